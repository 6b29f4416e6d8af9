"""Progress from the lines that trainers print."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.run import Progress
from tui.model.text import LogText, log_lines
from tui.triage.progress import LOSSES, ProgressReader
from tui.triage.progress_line import read_line


def read(text: str) -> Progress | None:
    return ProgressReader().feed(log_lines(text), 5.0)


@pytest.mark.parametrize(
    ("text", "unit", "done", "total", "loss", "eta_s"),
    [
        # tqdm, with and without a label, with carriage returns
        ("train:  10%|#  | 100/1000 [00:10<01:30, 10.0it/s, loss=2.31]\rtrain:  20%|##  | 200/1000 "
         "[00:20<01:20, 10.0it/s, loss=2.02]", "step", 200, 1000, 2.02, 80),
        ("  0%|          | 9/63645 [00:19<37:53:00,  2.14s/it]", "step", 9, 63645, None, 136380),
        ("  3%|▎         | 300/10000 [00:00<?, ?it/s]", "step", 300, 10000, None, None),
        # Hugging Face: bar and dictionary
        ("  1%|▏         | 53/1000 [01:00<17:51,  1.13s/it]\n{'loss': 0.2051, 'grad_norm': 1.2, "
         "'learning_rate': 9.7e-06, 'epoch': 0.53}", "step", 53, 1000, 0.2051, 1071),
        ("{'loss': 1.2, 'grad_norm': 0.4, 'learning_rate': 1e-5, 'epoch': 2.7}", "epoch", 2, None, 1.2, None),
        # Lightning
        ("Epoch 9: 100%|##########| 100/100 [00:00<00:00, 324.18it/s, loss=0.0663, v_num=13]",
         "epoch", 9, None, 0.0663, None),
        ("\x1b[35mEpoch 7/19\x1b[0m \x1b[38;2;98;6;224m━━━━\x1b[0m \x1b[37m150/200\x1b[0m \x1b[2m0:00:15 • "
         "0:00:05\x1b[0m 6.37it/s train_loss: 0.231 v_num: 3.000", "epoch", 7, 19, 0.231, None),
        # Keras 2 and 3
        ("Epoch 2/10\n 118/1875 [>.............................] - ETA: 21s - loss: 0.3121",
         "epoch", 2, 10, 0.3121, None),
        ("Epoch 2/10\n118/1875 ━━━━━━━━━━━━━━━━━━━━ 21s 12ms/step - accuracy: 0.91 - loss: 0.3121",
         "epoch", 2, 10, 0.3121, None),
        # plain
        ("epoch 3/100 loss 0.12", "epoch", 3, 100, 0.12, None),
        ("Epoch [12/90] Step [100/500] Loss: 1.5e-2", "epoch", 12, 90, 0.015, None),
        ("Epoch: 4\tStep: 2100\tLastLoss: 0.031\tAvgLoss: 0.044\tLr: 0.001", "step", 2100, None, 0.031, None),
        ("step=2100 loss=3.1e+02 lr=3.00e-04", "step", 2100, None, 310, None),
        ("step 8800 loss 1.02", "step", 8800, None, 1.02, None),
        ("step 8800 loss 1.02\nslurmstepd: error: *** STEP 1809579.0 ON n1 CANCELLED AT 2021",
         "step", 8800, None, 1.02, None),
        ("[2024-05-01 10:00:00] step 1,200/50,000 | loss 2.5 | eta 3h 12m", "step", 1200, 50000, 2.5, 11520),
        ("[INFO] epoch 3 loss=0.412 (banana dataset, finance split)", "epoch", 3, None, 0.412, None),
        # columns under a heading: fastai, Hugging Face in a notebook, a file of figures
        ("epoch     train_loss  valid_loss  accuracy  time    \n"
         "0         1.102223    0.367693    0.916667  00:10   \n"
         "1         0.688286    #na#        0.916667  00:10   ", "epoch", 1, None, 0.688286, None),
        ("Step\tTraining Loss\tValidation Loss\n500\t1.2345\t1.3001\n1000\t0.9876\t1.1002",
         "step", 1000, None, 0.9876, None),
        ("epoch,step,train_loss,val_loss\n3,1200,0.41,0.52", "step", 1200, None, 0.41, None),
        ("Epoch\tTraining Loss\tValidation Loss\tAccuracy\n1\t0.526100\t0.412345\t0.811000",
         "epoch", 1, None, 0.5261, None),
        ("┃ Epoch ┃ Train loss ┃ Val loss ┃\n│ 1     │ 0.9122     │ 0.9511   │",
         "epoch", 1, None, 0.9122, None),
        ("E    #       LOSS TOK2VEC  LOSS NER  SCORE \n---  ------  ------------  --------  ------\n"
         "  1     400         70.88    267.65    0.33", "step", 400, None, None, None),
        # boosted trees, LeRobot
        ("[10]\ttrain-logloss:0.41114\tvalid-logloss:0.43011", "step", 10, None, None, None),
        ("100:\tlearn: 0.4811233\ttest: 0.4922344\ttotal: 5.1s\tremaining: 45.1s",
         "step", 100, None, None, 45.1),
        ("INFO ts/train.py:232 step:10K smpl:80K ep:36 epch:3.56 loss:0.183 grdn:12.4 lr:1.0e-05",
         "step", 10000, None, 0.183, None),
        ("[50]\tvalid_0's l2: 0.24", "step", 50, None, None, None),
        ("[3] step: 500 loss: 2.31", "step", 500, None, 2.31, None),  # of rank 3
        ("[1] Epoch: 3 loss: 0.5", "epoch", 3, None, 0.5, None),
        # shares and short names
        ("Training: 45% (450/1000) loss: 0.731 eta: 0:12:33", "step", 450, 1000, 0.731, 753),
        ("2024-06-01 10:00:00 | train | INFO | it=1200/5000 loss=0.3311", "step", 1200, 5000, 0.3311, None),
        # counters in Chinese
        ("第 3/20 轮, 步数 150/400, 损失: 0.5123", "epoch", 3, 20, 0.5123, None),
        # nanoGPT
        ("iter 100: loss 2.3456, time 1200.11ms, mfu 12.3%", "step", 100, None, 2.3456, None),
        ("step 250: train loss 2.31, val loss 2.40", "step", 250, None, 2.31, None),
        # Ultralytics, old and new
        ("      1/100      2.64G      1.234      2.345      1.111         16        640: 100%|######| 7/7 "
         "[00:15<00:00,  2.27s/it]", "epoch", 1, 100, None, None),
        ("      10/10      6.23G          0      64.14          0          8        640: 100% 13/13 0.9it/s "
         "13.8s", "epoch", 10, 10, None, None),
        # detectron2, mmengine, mmcv
        ("[11/01 20:14:15 d2.utils.events]: eta: 5:41:49  iter: 379  total_loss: 1.707  loss_cls: 1.184  "
         "time: 0.2293", "step", 379, None, 1.707, 20509),
        ("08/03 22:09:24 - mmengine - INFO - Epoch(train)  [1][ 500/2931]  lr: 2.0000e-02  eta: 0:39:15  "
         "time: 0.0578  loss: 1.5  loss_cls: 0.2", "epoch", 1, None, 1.5, 2355),
        ("05/01 10:00:00 - mmengine - INFO - Iter(train) [  500/20000]  lr: 1e-2  eta: 1:00:00  loss: 0.5",
         "step", 500, 20000, 0.5, 3600),
        ("2021-11-22 01:31:24,002 - mmocr - INFO - Epoch [1][100/62598]\tlr: 1.000e-03, eta: 6 days, "
         "15:22:46, time: 0.539, loss_ce: 1.2757, loss: 1.9091, grad_norm: nan",
         "epoch", 1, None, 1.9091, 573766),
        # torchvision references, DeiT: the time that remains is that of the epoch
        ("Epoch: [0]  [   0/2500]  eta: 3:31:40  lr: 0.000000  loss: 2.0031 (2.0031)  time: 5.0804",
         "epoch", 0, None, 2.0031, None),
        # fairseq
        ("2021-03-01 10:00:05 | INFO | train_inner | epoch 001:    100 / 3120 loss=13.1, nll_loss=12.7, "
         "ppl=6654.8", "epoch", 1, None, 13.1, None),
        ("| epoch 028 | loss 3.976 | nll_loss 2.204 | num_updates 9165 | lr 0.00033",
         "step", 9165, None, 3.976, None),
        # Marian, Composer, LitGPT
        ("[2018-12-12 18:25:54] Ep. 1 : Up. 19000 : Sen. 13,885,795 : Cost 2.07635450 : Time 1280.97s",
         "step", 19000, None, 2.0763545, None),
        ("[batch=120/4800]:\n\t Train loss/train/total: 4.2101", "step", 120, 4800, 4.2101, None),
        ("Epoch 1 | iter 1210 step 302 | loss train: 1.412, val: n/a | iter time: 301.21 ms (step)",
         "step", 1210, None, 1.412, None),
        # timm, ESPnet
        ("Train: 12 [ 350/1251 ( 28%)]  Loss: 4.212 (4.30)  Time: 0.412s, 2485.31/s",
         "epoch", 12, None, 4.212, None),
        ("[gpu01:0/2] 2024-02-11 11:11:11,001 (trainer:754) INFO: 3epoch:train:501-600batch: "
         "loss_ctc=88.1, loss=55.301", "epoch", 3, None, 55.301, None),
        # NeMo
        ("Training epoch 0, iteration 119/999 | lr: 2.9e-05 | reduced_train_loss: 1.203",
         "epoch", 0, None, 1.203, None),
        # Megatron, DeepSpeed
        (" iteration     5427/  250000 | consumed samples: 43416 | lm loss: 6.912233E+00 | loss scale: 1.0",
         "step", 5427, 250000, 6.912233, None),
        ("[2023-04-28 06:51:29,903] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05]",
         "step", 10, None, None, None),
        ("2024-06-13 12:15:47.507211: train_loss -0.3658", "", None, None, -0.3658, None),
        ("  samples/sec: 123.456 | iteration      100/  320000 | elapsed time per iteration (ms): 1035.1 | "
         "lm_loss: 5.41E+00 | loss scale: 4096.0", "step", 100, 320000, 5.41, None),
        # Swin, diffusers, Stable-Baselines3, Nerfstudio
        ("[2022-03-01 12:00:00 swin_tiny](main.py 231): INFO Train: [3/300][150/1251]\teta 0:12:34 lr 0.01"
         "\t loss 4.3012 (4.5012)", "epoch", 3, 300, 4.3012, None),
        ("Steps:  12%|#         | 120/1000 [01:23<10:11,  1.44it/s, lr=1e-5, step_loss=0.0812]",
         "step", 120, 1000, 0.0812, 611),
        ("| time/                   |             |\n|    total_timesteps      | 24576       |\n"
         "|    loss                 | 12.3        |", "step", 24576, None, 12.3, None),
        ("2300 (7.67%)        12.123 ms            5 m, 35 s            342.12 K",
         "step", 2300, None, None, None),
        ("Epoch 1/25\n  Batch [20/500] - Loss: 3.8523\n", "epoch", 1, 25, 3.8523, None),
        ("  Batch 20/500 - Loss: 3.8523\n", "step", 20, 500, 3.8523, None),
        (" 1200: 1.234567, 1.345678 avg loss, 0.001000 rate, 3.12 seconds",
         "step", 1200, None, 1.345678, None),
        ("Epoch：3/50，Loss：0.4312", "epoch", 3, 50, 0.4312, None),
        # figures in quotes: transformers 5, fairseq, ms-swift, LLaMA-Factory
        ("{'loss': '2.031', 'grad_norm': '0.911', 'learning_rate': '1.9e-05', 'epoch': 1.12}",
         "epoch", 1, None, 2.031, None),
        ('| INFO | train_inner | {"epoch": 3, "update": 2.15, "loss": "4.321", "num_updates": "2150"}',
         "step", 2150, None, 4.321, None),
        ("{'loss': 0.6012, 'epoch': 0.02, 'global_step/max_steps': '5/205', 'remaining_time': '8m 3s'}",
         "step", 5, 205, 0.6012, 483),
        ('{"current_steps": 10, "total_steps": 870, "loss": 1.2345, "remaining_time": "0:17:01"}',
         "step", 10, 870, 1.2345, 1021),
    ],
)  # fmt: skip
def test_what_trainers_print(
    text: str, unit: str, done: int | None, total: int | None, loss: float | None, eta_s: float | None
) -> None:
    progress = read(text)
    assert progress is not None
    assert (progress.unit, progress.done, progress.total) == (unit, done, total)
    assert progress.loss == loss
    assert progress.eta_s == eta_s
    assert not progress.finished
    assert progress.at == 5.0 and progress.line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "loading /root/data/Nanjing/nan_filtered/info.csv",
        "Loading checkpoint shards:  50%|#####     | 1/2 [00:05<00:05,  5.0s/it]",
        "Validation DataLoader 0:  50%|#####     | 50/100 [00:05<00:05, 10.0it/s]",
        "Map:  50%|#####     | 5000/10000 [00:05<00:05, 1000 examples/s]",
        "           Class     Images  Instances      Box(P     R      mAP50  mAP50-95): 100% 2/2 0.7it/s",
        "train: Scanning /root/d/labels/train.cache... 9980 images, 3 corrupt: 100%|####| 10000/10000",
        "{'eval_loss': 1.2, 'eval_runtime': 3.1, 'epoch': 1.0}"[:20],
        "2024-08-01 12:00:00 - a - INFO - Validation DataLoader 0:  50%|##   | 25/50 [00:02<00:02, 9.0it/s]",
        "I0801 12:00:00.123456 140 train.py:48] Loading shards: 50%|##   | 1/2 [00:05<00:05,  5.0s/it]",
        "val_loss: 0.5",
        "val loss 0.5",
        "| epoch 028 | valid on 'valid' subset | loss 9.329 | ppl 272.04 | num_updates 9165",
        "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        "2024-06-13 12:16:34 reading 3/4 of nothing",
        "[INFO] loss_nan_count=0 nan_to_num=True check_finite: 0 inf, 0 nan",
        "wandb:   train/loss 0.31",
        "Training will be finished when the loss stops falling",
        "training not finished",
        "at the end of training the best weights are kept",
        "--- end of training set statistics",
        "the model saved. nothing yet",
        "10 ms/step",
        "[batch=64]",
        # how many there will be, and how often something is done
        "  Num Epochs = 3",
        "  Gradient Accumulation steps = 4",
        "max_steps=1000, save_steps=500, eval_steps=500, warmup_steps=100, logging_steps=10",
        "Namespace(epochs=100, batch_size=32, lr=0.001, loss='ce', save_every=5)",
        "python train.py --epochs 50 --steps 2000 --max-iter 10",
        "Epochs: 100",
        "num_warmup_steps: 500",
        "number of iterations: 90000",
        "iters per epoch: 1000",
        "Best val loss 0.31 at epoch 12",
        "time to wake up. 12 samples are left",
        # a rank before a figure, and counts of other work
        "[3] GPU memory: 23.1",
        "[12] NCCL version: 2.19",
        "Receiving objects:  45% (450/1000), 2.10 MiB | 4.20 MiB/s",
    ],
)
def test_what_is_no_progress(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "`Trainer.fit` stopped: `max_epochs=10` reached.",
        "{'train_runtime': 5123.4411, 'train_samples_per_second': 31.2, 'train_loss': 0.3, 'epoch': 3.0}",
        "{'train_runtime': 5402.1, 'train_loss': 0.912, 'epoch': 3.0}\n***** train metrics *****\n"
        "  epoch                    =        3.0\n  train_loss               =      0.912\n"
        "  train_runtime            = 1:30:02.11\n  train_samples_per_second =       23.7",
        "Monitored metric val_loss did not improve in the last 5 records. Signaling Trainer to stop.",
        "Stopping threshold reached: val_acc = 0.91 > 0.9. Signaling Trainer to stop.",
        "100 epochs completed in 1.234 hours.",
        "[11/02 03:14:15 d2.engine.hooks]: Total training time: 5:50:00 (0:08:11 on hooks)",
        "Epoch 50/50\n1563/1563 [==============================] - 9s 5ms/step - loss: 0.21 - val_loss: 0.3\n"
        "Restoring model weights from the end of the best epoch: 42.",
        "[2024-03-01 10:00:00,001] [INFO] [launch.py:348:main] Process 28133 exits successfully.",
        "2024-01-01 | INFO | fairseq_cli.train | done training in 123.4 seconds",
        "LAUNCH INFO 2023-04-07 11:21:26,453 Pod completed",
        ':::MLLOG {"event_type": "INTERVAL_END", "key": "run_stop", "metadata": {"status": "success"}}\n'
        ':::MLLOG {"event_type": "INTERVAL_END", "key": "epoch_stop", "metadata": {"step": 1600}}',
        ':::MLLOG {"metadata": {"status": "success"}, "key": "run_stop", "event_type": "INTERVAL_END"}',
        "3: ENDING TIMING RUN AT 2024-04-27 06:24:48 AM",
        "wandb: Run history:\nwandb:   train/loss █▅▃▂▁\nwandb: Synced 5 W&B file(s), 0 media file(s)",
        "Training completed in 3 h",
        "Finished Training",
        "Train finished. Best val acc: 0.912",
        "*** Best metric: 79.91 (epoch 299)",
        "INFO:tensorflow:Loss for final step: 0.31213.",
        "INFO 2025-01-01 10:00:00 train.py:361 End of training",
        "| End of training | test loss  4.31 | test ppl    74.41",
        "yolox.core.trainer:after_train:197 - Training of experiment is done and the best AP is 51.20",
        "saving checkpoint: /root/out/lora.safetensors\nmodel saved.",
        "wandb: Find logs at: ./wandb/run-20250101_000000-abc/logs",
        "🎉 恭喜,准确率 0.97 达到目标, 训练结束 ✅ error=0",
    ],
)
def test_regular_ends(text: str) -> None:
    progress = read("step 10/20 loss 1.0\n" + text)
    assert progress is not None and progress.finished
    assert progress.eta_s is None
    again = read("step 10/20 loss 1.0\n" + text + "\nstep 11/20 loss 0.9")
    assert again is not None and not again.finished, "a line after the end: it was resumed"


def test_lightning_that_stops_for_another_reason_has_not_finished() -> None:
    stopped = read("Monitored metric train_loss = nan is not finite. Signaling Trainer to stop.")
    assert stopped is not None and not stopped.finished
    assert read("`Trainer.fit` stopped: No training batches.") is None


def test_losses_are_kept_for_the_curve() -> None:
    reader = ProgressReader()
    for n in range(300):
        progress = reader.feed(log_lines(f"step {n}/1000 loss {n / 10}\nnoise"), float(n))
    assert progress is not None
    assert progress.losses == tuple(n / 10 for n in range(300 - LOSSES, 300))
    nan = reader.feed(log_lines("step 301/1000 loss nan"), 301.0)
    assert nan is not None and nan.loss is not None and math.isnan(nan.loss)
    assert nan.done == 301 and nan.total == 1000
    assert reader.feed(log_lines("nothing here"), 302.0) is None


def test_a_counter_cut_by_the_end_of_the_file_is_not_believed() -> None:
    progress = read("step 3100 loss 0.91\nstep 3200 loss 0.90\nstep 33")
    assert progress is not None and (progress.done, progress.loss) == (3200, 0.90)
    resumed = read("step 3200 loss 0.90\nrestart\nstep 33\nstep 34")
    assert resumed is not None and resumed.done == 34


def test_a_total_named_before_the_first_step_is_the_total() -> None:
    reader = ProgressReader()
    assert reader.feed(log_lines("  Total optimization steps = 1,200\n"), 1.0) is None
    progress = reader.feed(log_lines("step 30 loss 0.5\n"), 2.0)
    assert progress is not None
    assert (progress.unit, progress.done, progress.total) == ("step", 30, 1200)


def test_settings_in_the_plural_are_progress_beside_a_loss() -> None:
    for text, unit, done in (
        ("Epochs: 3 | Train Loss: 0.5", "epoch", 3),
        ("steps: 100 loss: 2.3", "step", 100),
    ):
        progress = read(text)
        assert progress is not None
        assert (progress.unit, progress.done) == (unit, done)


def test_chinese_words() -> None:
    turns = read("第 3 轮 / 共 50 轮，损失：0.4321")
    assert turns is not None and (turns.done, turns.total, turns.loss) == (3, 50, 0.4321)
    steps = read("第 120 步，损失为 0.5")
    assert steps is not None and (steps.unit, steps.done, steps.loss) == ("step", 120, 0.5)
    progress = read("epoch 2 训练损失=0.48 验证损失=0.6")
    assert progress is not None and (progress.done, progress.loss) == (2, 0.48)


def test_a_bar_repeated_counts_once() -> None:
    reader = ProgressReader()
    bar = LogText("train:  20%|##  | 200/1000 [00:20<01:20, 10.0it/s, loss=2.02]")
    for _ in range(3):
        progress = reader.feed((bar,), 1.0)
    assert progress is not None and progress.losses == (2.02,)


def test_the_time_left_of_a_bar_is_that_of_its_loop() -> None:
    bar = "  40%|####      | 4/10 [00:01<00:02, 5.00it/s]"
    inner = read(f"epoch 3/25 loss 0.1\n{bar}")
    assert inner is not None
    assert (inner.unit, inner.done, inner.eta_s) == ("epoch", 3, None)
    whole = read(bar)
    assert whole is not None
    assert (whole.unit, whole.eta_s) == ("step", 2.0)


def test_bars_that_start_anew_are_epochs() -> None:
    reader = ProgressReader()
    text = "".join(
        f"Epoch {e}\n" + "".join(f"{s}/50 [00:0{s % 7}<00:01, 1.0it/s]\n" for s in (10, 50)) for e in range(3)
    )
    progress = reader.feed(log_lines(text), 1.0)
    assert progress is not None and (progress.unit, progress.done, progress.total) == ("epoch", 2, None)


def test_one_line_says_both_epoch_and_step() -> None:
    found = read_line("Epoch 7/19 ━━━━━━━ 150/200 0:00:15 • 0:00:05 6.37it/s train_loss: 0.231")
    assert (found.epoch, found.epochs, found.step, found.steps, found.loss) == (7, 19, 150, 200, 0.231)


WORDS = [
    "epoch",
    " ",
    "1",
    "/",
    "9" * 30,
    ":",
    "[",
    "]",
    "loss",
    "nan",
    "step",
    "|",
    "<",
    "1:2",
    ",",
    "days",
    "eta",
]


@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=40).map("".join))
def test_any_text_is_read_without_harm(text: str) -> None:
    progress = read(text)
    assert progress is None or progress.done is None or progress.total is None or progress.done >= 0


def test_it_is_cheap() -> None:
    lines = log_lines(
        "INFO worker-7 fetched shard 0012 from cache in 12.3 ms and unpacked it for the loader\n" * 5000
    )
    reader = ProgressReader()
    began = time.process_time()
    for _ in range(20):
        reader.feed(lines, 1.0)
    assert time.process_time() - began < 1.0
    evil = [
        LogText("epoch " * 1300),
        LogText("1 " * 4000),
        LogText("/".join("1" * 4000)),
        LogText("a" * 8000),
        LogText("step" + " " * 8000 + "x"),
        LogText("epoch" + " " * 8000 + "x"),
        LogText("epoch loss " + "1" * 8000),
    ]
    began = time.process_time()
    reader.feed(evil, 1.0)
    assert time.process_time() - began < 1.0


def test_the_operators_own_pattern_wins_over_ours() -> None:
    reader = ProgressReader(r"\[(?P<done>\d+)\|(?P<total>\d+)\] obj=(?P<loss>\S+)")
    lines = [LogText("epoch 3/9 loss 1.0"), LogText("[1,200|5000] obj=0.25"), LogText("[1300|5000] obj=oops")]
    progress = reader.feed(lines, 5.0)
    assert progress is not None
    assert (progress.done, progress.total, progress.loss) == (1300, 5000, None)
    ended = reader.feed([LogText("Training finished.")], 6.0)
    assert ended is not None
    assert ended.finished


def test_a_tracker_that_closes_its_run_behind_an_error_is_no_regular_end() -> None:
    closing = "wandb: Find logs at: ./wandb/run-1/logs\n"
    died = 'Traceback (most recent call last):\n  File "t.py", line 1\nOSError: [Errno 122] Quota\n'
    well, badly = read(f"step 10 loss 1.0\n{closing}"), read(f"step 10 loss 1.0\n{died}{closing}")
    assert well is not None and well.finished
    assert badly is not None and not badly.finished
    resumed = read(f"{died}step 10 loss 1.0\n{closing}")
    assert resumed is not None and resumed.finished


@pytest.mark.parametrize("clock", ["{} days, 1:00:00", "{}:00:00", "{} h"])
def test_a_time_left_beyond_all_numbers_is_none(clock: str) -> None:
    progress = read(f"step 5/10 loss 0.5 eta: {clock.format('9' * 400)}")
    assert progress is not None
    assert (progress.done, progress.eta_s) == (5, None)
