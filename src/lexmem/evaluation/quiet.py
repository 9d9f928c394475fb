"""Keeps lm-eval and datasets silent and off the network; the items of every task are local files."""

import logging
import os

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HOME": ".hf",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
}


def silence() -> None:
    """Call before the first import of lm_eval or datasets: both read these variables when they are imported."""
    for name, value in OFFLINE.items():
        os.environ.setdefault(name, value)
    for name in ("lm_eval", "datasets", "lm-eval"):
        logging.getLogger(name).setLevel(logging.ERROR)
