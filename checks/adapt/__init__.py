"""Everything that differs between releases of transformers, adapted in one place.

Nothing here looks at a version number. What a release calls a thing, which spellings of a
configuration it takes and what it returns are found out by looking at what is there.

``building`` makes configurations and models, ``calling`` runs them and reads what they return,
``serving`` drives continuous batching.
"""

from checks.adapt.building import (
    ModelClasses,
    attention_used,
    build_config,
    build_model,
    config_arguments,
    load_classes,
    model_of,
    rope_dictionary,
)
from checks.adapt.calling import (
    accepts,
    cache_argument,
    cache_length,
    call,
    crop_cache,
    find_cache,
    generation_option,
    is_cache,
    logits_after,
    logits_processor,
    require_option,
    returned_cache,
    rotary_tables,
    uncompiled,
)
from checks.adapt.serving import generate_batch

__all__ = [
    "ModelClasses",
    "accepts",
    "attention_used",
    "build_config",
    "build_model",
    "cache_argument",
    "cache_length",
    "call",
    "config_arguments",
    "crop_cache",
    "find_cache",
    "generate_batch",
    "generation_option",
    "is_cache",
    "load_classes",
    "logits_after",
    "logits_processor",
    "model_of",
    "require_option",
    "returned_cache",
    "rope_dictionary",
    "rotary_tables",
    "uncompiled",
]
