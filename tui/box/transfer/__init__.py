"""Files from a box to this computer's disk, every byte hashed on its way; knows nothing but transports."""
