"""Prints a script that shows one case by itself: what one would paste into an issue upstream.

The script needs only torch and a release. It shows the difference in the bug report's own form,
and exits with 1 where there is one, with 0 where there is none.
"""

from __future__ import annotations

import pprint
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from checks.catalog import Case

_HEAD = '''\
"""{title}

{verdict}
"""
import math
import sys

import torch
import transformers
from transformers.models.{package}.configuration_{package} import {config_class}
from transformers.models.{package}.modeling_{package} import {model_class}

O = {original}  # original_max_position_embeddings: above it, the long factors
arguments = {arguments}
model = {model_class}({config_class}(**arguments)).to({dtype}).eval()
torch.manual_seed(0)
with torch.no_grad():
    for name, parameter in sorted(model.named_parameters()):
        one = parameter.dim() == 1 and name.endswith("weight")
        parameter.fill_(1.0) if one else parameter.normal_(0, 0.25)
torch.set_grad_enabled(False)
print("transformers", transformers.__version__, "torch", torch.__version__)
'''

_COMPARE = '''
model = model.to("{device}")
ids = torch.randint(3, 61, (2, {width}), generator=torch.Generator().manual_seed(1)).to("{device}")
worst = 0.0


def uncached(tokens, mask):
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return model(input_ids=tokens, attention_mask=mask, position_ids=positions,
                 use_cache=False).logits[:, -1].float()


def compare(tokens, mask, logits, call=None):
    """One generated step against one forward over the whole prefix."""
    global worst
    right, logits = uncached(tokens, mask), logits.float()
    error = ((logits - right).abs().amax(-1) / right.abs().amax(-1)).nan_to_num(math.inf).max()
    if error > {tolerance} and worst <= {tolerance}:
        print("last generation call:", call)
        print("generated next token:", logits.argmax(-1).tolist())
        print("uncached full-prefix next token:", right.argmax(-1).tolist())
        print("first difference after", tokens.shape[1], "tokens, relative error", float(error))
    worst = max(worst, float(error))
'''

_CALLS = """
calls = []


def note(module, args, kwargs):
    cache = next((v for v in kwargs.values() if hasattr(v, "get_seq_length")), None)
    ids, positions = (kwargs.get(k) for k in ("input_ids", "position_ids"))
    lists = [None if v is None else v[..., -12:].tolist() for v in (ids, positions)]
    calls.append((*lists, None if cache is None else int(cache.get_seq_length())))


model.register_forward_pre_hook(note, with_kwargs=True)
"""

_GENERATE = '''

def generate(tokens, new_tokens, mask=None, **options):
    """Generate, and compare the logits of every step."""
    mask = torch.ones_like(tokens) if mask is None else mask
    start, options = len(calls), {{"do_sample": False, "input_ids": tokens, **options}}
    output = model.generate(attention_mask=mask, max_new_tokens=new_tokens, pad_token_id=0,
                            return_dict_in_generate=True, output_logits=True, **options)
    text = output.sequences
    if text.shape[1] == new_tokens:  # of embeddings, only the new tokens come back
        text = torch.cat([tokens, text], 1)
    made = calls[start:]
    for step, logits in enumerate(output.logits):
        length = tokens.shape[1] + step
        wide = torch.cat([mask, mask.new_ones(len(mask), step)], 1)
        call = made[step] if len(made) == len(output.logits) else None
        compare(text[:, :length], wide, logits, call)
    return output, text
'''

_CACHE_OF = '''

def cache_of(output):
    """The cache, under whatever name; older releases return tuples."""
    return next((k, v) for k, v in output.items()
                if hasattr(v, "get_seq_length") or k == "past_key_values")
'''

_TAIL = """

{body}
print("largest relative error:", worst)
sys.exit(worst > {tolerance})
"""

_TABLES = """
# The published formula: 1 / (factor_i * theta ** (2i / d)), cos and sin scaled.
d, theta = {rotated}, {theta}
rotary = next(m for m in model.modules() if "RotaryEmbedding" in type(m).__name__)
asked = "position_ids" in rotary.forward.__code__.co_varnames or hasattr(
    rotary.forward, "__wrapped__")
worst = 0.0
for length in (O - 1, O, O + 1, O):
    long = length > O
    factors = torch.tensor({long_factors} if long else {short_factors}).double()
    scaling = {long_scaling} if long else {short_scaling}
    angles = torch.arange(length)[:, None] / (factors * theta ** (torch.arange(0, d, 2) / d))
    right = angles.cos().repeat(1, 2) * scaling
    x, positions = torch.zeros(1, 1, length, 2), torch.arange(length)[None]
    cos = (rotary(x, position_ids=positions) if asked else rotary(x, seq_len=length))[0]
    error = float((cos.reshape(length, -1) - right).abs().max())
    print(length, "tokens:", "long" if long else "short", "factors, scaling", round(scaling, 4),
          "| the model's:", round(float(cos.reshape(length, -1)[0, 0]), 4), "| off by", error)
    worst = max(worst, error)
sys.exit(worst > 1e-4)
"""

# How each scenario drives the helpers of the script.
_BODIES: Mapping[str, str] = MappingProxyType(
    {
        "below-boundary": "generate(ids[:, : O - 4], 5)",
        "decode-crossing": "generate(ids[:, : O - 4], 8)",
        "prompt-at-boundary": "generate(ids[:, :O], 4)",
        "prompt-past-boundary": "generate(ids[:, : O + 1], 4)",
        "left-padded": """\
tokens, mask = ids[:, : O - 3].clone(), torch.ones_like(ids[:, : O - 3])
tokens[1, :2], mask[1, :2] = 0, 0
generate(tokens, 7, mask)""",
        "all-rows-padded": """\
tokens, mask = ids[:, : O - 2].clone(), torch.ones_like(ids[:, : O - 2])
for row, pads in enumerate((2, 3)):
    tokens[row, :pads], mask[row, :pads] = 0, 0
output, text = generate(tokens, 9, mask)
for length in range(O - 2, text.shape[1]):  # the longer row, against itself without padding
    alone = text[:1, 2:length]
    wide = torch.cat([mask, mask.new_ones(2, length - O + 2)], 1)
    compare(alone, torch.ones_like(alone), uncached(text[:, :length], wide)[:1])""",
        "beam-search": """\
both = [model.generate(ids[:, : O - 4], attention_mask=torch.ones_like(ids[:, : O - 4]),
                       num_beams=3, max_new_tokens=7, do_sample=False, pad_token_id=0,
                       return_dict_in_generate=True, output_scores=True, use_cache=cached)
        for cached in (True, False)]
for name, output in zip(("cached", "uncached"), both):
    print(name, output.sequences_scores.tolist(), output.sequences.tolist())
worst = float((both[0].sequences_scores - both[1].sequences_scores).abs().max())""",
        "sampling": """\
generate(ids[:, : O - 4], 8, do_sample=True, top_k=0, top_p=1.0, temperature=1.0)""",
        "static-cache": 'generate(ids[:, : O - 4], 8, cache_implementation="static")',
        "inputs-embeds": """\
embeds = model.get_input_embeddings()(ids[:, : O - 4])
generate(ids[:, : O - 4], 8, input_ids=None, inputs_embeds=embeds)""",
        "second-turn": """\
output, text = generate(ids[:, : O - 3], 2)
name, cache = cache_of(output)
generate(torch.cat([text, ids[:, 20:23]], 1), 3, **{name: cache})""",
        "continue-after-crossing": """\
output, text = generate(ids[:, : O - 2], 5)
name, cache = cache_of(output)
held = cache.get_seq_length() if hasattr(cache, "get_seq_length") else cache[0][0].shape[2]
print("the cache holds", int(held), "of", text.shape[1] - 1, "tokens")
generate(torch.cat([text, ids[:, 20:22]], 1), 3, **{name: cache})""",
        "chunked-prefill": "generate(ids[:, : O + 4], 3, prefill_chunk_size=4)",
        "assisted-decoding": """\
prompt = ids[:1, : O - 3].clone()
prompt[:, -2:] = prompt[:, :2]
draft = type(model)(type(model.config)(**arguments)).eval()
for index, assistant in enumerate((draft, model)):  # another model, and the same again
    for name, parameter in sorted(draft.named_parameters()):
        if parameter.dim() > 1:
            parameter.copy_(parameter.clone().normal_(0, 0.25) if assistant is draft
                            else model.get_parameter(name))
    draft.generation_config.eos_token_id = 10**6
    output, text = generate(prompt, 8, assistant_model=draft, eos_token_id=10**6)
generate(prompt, 8, prompt_lookup_num_tokens=3, eos_token_id=10**6)""",
        "crop-back": """\
output, text = generate(ids[:, : O - 2], 5)
name, cache = cache_of(output)
if isinstance(cache, tuple):
    cache = tuple(tuple(part[:, :, : O - 2] for part in layer) for layer in cache)
elif cache.get_seq_length() > O - 2:
    try:
        cache.crop(O - 2)
    except ValueError:  # newer caches are told how many tokens to remove
        cache.crop(O - 2 - int(cache.get_seq_length()))
generate(text[:, : O - 1], 2, **{name: cache})""",
        "sliding-window": "generate(ids[:, : O - 4], 8)",
        "explicit-position-ids": """\
generate(ids[:, : O - 4], 8, position_ids=torch.arange(O - 4, device=ids.device).expand(2, -1))""",
        "forward-loop": """\
name, cache, fed = None, None, 0
for length in range(O - 4, O + 5):
    mask = torch.ones_like(ids[:, :length])
    output = model(input_ids=ids[:, fed:length], attention_mask=mask, use_cache=True,
                   position_ids=torch.arange(fed, length, device=ids.device).expand(2, -1),
                   **({name: cache} if name else {}))
    compare(ids[:, :length], mask, output.logits[:, -1], calls[-1])
    (name, cache), fed = cache_of(output), length""",
        "regime-leak": """\
for length in (5, 12, 5, 12, 5):
    tokens, mask = ids[:, :length], torch.ones_like(ids[:, :length])
    used, kept, seen = uncached(tokens, mask), model, None
    model = type(kept)(type(kept.config)(**arguments)).eval()  # a fresh one
    model.load_state_dict(kept.state_dict())
    compare(tokens, mask, used)
    model = kept""",
        "continuous-batching": """\
from transformers.generation import configuration_utils

prompts = [ids[0, : O - 2].tolist(), ids[1, :3].tolist()]
settings = configuration_utils.GenerationConfig(max_new_tokens=10, do_sample=False,
                                                eos_token_id=-1, pad_token_id=0)
sizes, options = {"num_blocks": 16, "max_batch_tokens": 64}, {}
if hasattr(configuration_utils, "ContinuousBatchingConfig"):
    options["continuous_batching_config"] = configuration_utils.ContinuousBatchingConfig(**sizes)
else:
    vars(settings).update(sizes)
for key, module in list(sys.modules.items()):  # left alone, it sizes itself by the machine
    if "continuous_batching" in key and hasattr(module, "get_device_and_memory_breakdown"):
        module.get_device_and_memory_breakdown = lambda: (model.device, 2**30, 0, 0)
plain = type(model)(type(model.config)(**arguments)).eval()
plain.load_state_dict(model.state_dict())
answers = model.generate_batch(prompts, generation_config=settings, progress_bar=False, **options)
model = plain  # the serving loop has turned the other to paged attention
for answer in answers.values():
    text = torch.tensor([[*answer.prompt_ids, *answer.generated_tokens]])
    for length in range(len(answer.prompt_ids), text.shape[1]):
        right = uncached(text[:, :length], torch.ones_like(text[:, :length]))[0]
        best, served = right.max(), right[text[0, length]]
        if best - served > 1e-3 * right.abs().max():
            print("after", length, "tokens", int(text[0, length]), "was served, and",
                  int(right.argmax()), "is best")
            worst = 1.0
            break""",
        "compiled": """\
torch._dynamo.reset()
fast = torch.compile(model, backend="eager", dynamic=True)
for length in (5, 12, 5, 9, 8):
    tokens = ids[:, :length]
    logits = fast(input_ids=tokens, use_cache=False).logits[:, -1]
    compare(tokens, torch.ones_like(tokens), logits)""",
        "true-scale": "generate(ids[:1, : O - 3], 8)",
    }
)

_BY_TABLES = ("rotary-probe", "config-in-rope-dict")


def script_for(case: Case) -> str:
    """The script for *case*, spelled for the release of this environment.

    The case is measured first: where generation agrees with the model and the model is wrong, the
    script shows the rotary tables against the formula.

    Raises:
        ValueError: this release cannot do what the case needs.
    """
    import torch
    import transformers

    from checks import adapt
    from checks.compare import TOLERANCES
    from checks.errors import NotMeasured
    from checks.longrope import attention_scaling
    from checks.measure import measure
    from checks.models import SPECS
    from checks.scenarios import registry

    spec = SPECS[case.model]
    shape = spec.shape(registry.plan_of(case.scenario).shape)
    result = measure(case)
    found = result.evidence
    try:
        arguments = adapt.config_arguments(
            spec,
            shape,
            case.attention,
            original_in_rope_dict_only=case.scenario == "config-in-rope-dict",
        )
    except NotMeasured as stopped:
        raise ValueError(f"{case.id}: {stopped}") from None
    tables = case.scenario in _BY_TABLES or (
        case.scenario != "all-rows-padded"
        and str(found.get("oracles", "")) == "U agrees, R differs"
    )
    verdict = f"{result.status}: {result.defect or result.reason or found.get('reading', '')}"
    values: dict[str, Any] = {
        "title": f"LongRoPE crossing in transformers: {case.id}",
        "verdict": f"Seen with transformers {transformers.__version__}, torch "
        f"{torch.__version__}: {verdict}",
        "package": spec.package,
        "config_class": spec.config_class,
        "model_class": spec.model_class,
        "original": shape.original,
        "arguments": pprint.pformat(arguments, width=96, compact=True, sort_dicts=False),
        "dtype": f"torch.{case.dtype}",
        "device": case.device,
        "tolerance": TOLERANCES[case.dtype].agree,
        "width": max(64, shape.original + 32),
        "body": _BODIES.get(case.scenario, ""),
        "rotated": shape.rotated,
        "theta": shape.theta,
        "long_factors": list(shape.long_factors),
        "short_factors": list(shape.short_factors),
        "long_scaling": attention_scaling(shape, True),
        "short_scaling": attention_scaling(shape, False),
    }
    return (_HEAD + (_TABLES if tables else _comparing(values["body"]))).format(**values)


def _comparing(body: str) -> str:
    """The parts of the script that *body* makes use of."""
    parts = [_COMPARE]
    if "generate(" in body.replace("model.generate(", "") or "calls" in body:
        parts.append(_CALLS)
    if "generate(" in body.replace("model.generate(", ""):
        parts.append(_GENERATE)
    if "cache_of(" in body:
        parts.append(_CACHE_OF)
    return "".join([*parts, _TAIL])
