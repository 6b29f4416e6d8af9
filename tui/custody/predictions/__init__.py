"""Prediction files: found, read in pieces, their columns understood, their samples counted exactly once.

Formats: ``.parquet``, ``.csv``, ``.tsv``, ``.jsonl`` (or ``.ndjson``, or a list in ``.json``), ``.npz``,
``.safetensors``. One row (of an array: one place along its first axis) is one sample:

- ``id``, and the ``target`` beside the prediction;
- labels or numbers: ``prediction``; classes: ``p0``, ``p1``, … or a list ``probs`` or ``logits`` per sample;
  two classes: ``prob`` of the positive one;
- images and masks: arrays ``target`` and ``prediction``; tokens: lists ``target`` and ``logits``;
- boxes, one row per image: ``pred_boxes`` (each x1, y1, x2, y2), ``pred_scores``, ``pred_labels``,
  ``target_boxes``, ``target_labels``.

Parts of ranks (``predictions_rank0.csv``, ``preds-00000-of-00004.parquet``) are joined. Other columns are
declared under ``[[custody.predictions]]``; the common spellings in `roles` are recognised, and reported.
"""
