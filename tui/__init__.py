"""rgt: carry one training run on a rented GPU box from rent to proven teardown."""

__version__ = "0.1.0"
