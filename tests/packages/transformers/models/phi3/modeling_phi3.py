"""Phi-3 with LongRoPE, written from its published description, and greedy generation.

The cache is right at the crossing: it is cleared there, and the whole prefix is fed again.
`FAULT` turns that into one of the ways in which a release can be wrong.
"""

import math
import os
import time
from types import SimpleNamespace

import torch
from torch import nn

from transformers._fault import FAULT

if FAULT == "lacks the model":
    raise ModuleNotFoundError("no such model", name="transformers.models.phi3.modeling_phi3")


class Cache:
    """Keys and values of every layer."""

    def __init__(self):
        self.layers = {}

    def get_seq_length(self):
        return self.layers[0][0].shape[2] if self.layers else 0

    def update(self, layer, key, value):
        if layer in self.layers:
            old_key, old_value = self.layers[layer]
            key, value = torch.cat([old_key, key], 2), torch.cat([old_value, value], 2)
        self.layers[layer] = key, value
        return key, value


class Output(dict):
    """What a forward or generate returns: fields by name and by attribute."""

    __getattr__ = dict.__getitem__


class Norm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.epsilon = config.rms_norm_eps

    def forward(self, values):
        mean = values.pow(2).mean(-1, keepdim=True)
        return values * torch.rsqrt(mean + self.epsilon) * self.weight


class Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layer, self.heads = layer, config.num_attention_heads
        self.key_heads = config.num_key_value_heads
        self.size = config.hidden_size // self.heads
        width = (self.heads + 2 * self.key_heads) * self.size
        self.qkv_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, config.hidden_size, bias=False)

    def forward(self, hidden, cos, sin, hidden_from, cache):
        widths = [self.heads * self.size] + 2 * [self.key_heads * self.size]
        query, key, value = (
            part.unflatten(-1, (-1, self.size)).transpose(1, 2)
            for part in self.qkv_proj(hidden).split(widths, dim=-1)
        )
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        if cache is not None:
            key, value = cache.update(self.layer, key, value)
        groups = self.heads // self.key_heads
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.size) + hidden_from
        mixed = scores.softmax(-1) @ value
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


def rotate(heads, cos, sin):
    first, second = heads.chunk(2, dim=-1)
    return heads * cos[:, None] + torch.cat([-second, first], dim=-1) * sin[:, None]


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_up_proj = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, hidden):
        gate, up = self.gate_up_proj(hidden).chunk(2, dim=-1)
        return self.down_proj(nn.functional.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.self_attn, self.mlp = Attention(config, layer), FeedForward(config)
        self.input_layernorm, self.post_attention_layernorm = Norm(config), Norm(config)

    def forward(self, hidden, *attention):
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), *attention)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        count = config.num_hidden_layers
        self.layers = nn.ModuleList(Layer(config, index) for index in range(count))
        self.norm = Norm(config)


class Phi3ForCausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        if config._attn_implementation not in ("eager", "sdpa"):
            raise ValueError(f"no {config._attn_implementation} attention here")
        self.config, self.generation_config = config, SimpleNamespace(eos_token_id=None)
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def rotary(self, position_ids):
        """Cos and sin (rows, length, head size); long factors iff any position is past O."""
        config = self.config
        original = config.original_max_position_embeddings
        long = int(position_ids.max()) + 1 > original
        factors = torch.tensor(config.rope_scaling["long_factor" if long else "short_factor"])
        size = config.hidden_size // config.num_attention_heads
        powers = torch.arange(0, size, 2).float() / size
        angles = position_ids[..., None].float() / (factors * config.rope_theta**powers)
        angles = torch.cat([angles, angles], dim=-1)
        ratio = config.max_position_embeddings / original
        scale = math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0
        return angles.cos() * scale, angles.sin() * scale

    def forward(
        self,
        input_ids,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        use_cache=None,
        return_dict=True,
    ):
        misbehave()
        cached = past_key_values.get_seq_length() if past_key_values is not None else 0
        length = cached + input_ids.shape[1]
        if attention_mask is None:
            attention_mask = torch.ones(input_ids.shape[0], length, dtype=torch.long)
        attention_mask = attention_mask[:, -length:]
        if position_ids is None:
            position_ids = positions(attention_mask)[:, cached:]
        if use_cache and past_key_values is None:
            past_key_values = Cache()
        columns, rows = torch.arange(length), torch.arange(cached, length)[:, None]
        seen = (columns <= rows) & attention_mask.bool()[:, None, :]
        hidden_from = torch.zeros(seen.shape).masked_fill(~seen, -1e9)[:, None]
        hidden = self.model.embed_tokens(input_ids)
        cos, sin = self.rotary(position_ids)
        for layer in self.model.layers:
            hidden = layer(hidden, cos, sin, hidden_from, past_key_values)
        logits = self.lm_head(self.model.norm(hidden))
        return Output(logits=logits, past_key_values=past_key_values)

    def generate(
        self, input_ids, attention_mask, max_new_tokens, logits_processor, use_cache=True, **_
    ):
        cache = None
        for step in range(max_new_tokens):
            if self.crosses(attention_mask):
                cache = None
            # Where the cache is empty the whole prefix has to be fed, not the newest token alone.
            loses_prefix = FAULT == "disagrees" and step > 0
            step_ids = input_ids[:, -1:] if cache is not None or loses_prefix else input_ids
            output = self(
                input_ids=step_ids,
                attention_mask=attention_mask,
                position_ids=positions(attention_mask)[:, -step_ids.shape[1] :],
                past_key_values=cache,
                use_cache=use_cache,
            )
            cache = output.past_key_values
            best = logits_processor(input_ids, output.logits[:, -1]).argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, best], dim=1)
            attention_mask = torch.cat([attention_mask, torch.ones_like(best)], dim=1)
        return Output(sequences=input_ids, past_key_values=cache)

    def crosses(self, attention_mask):
        """Whether this step is the first whose longest row is past O."""
        longest = int(attention_mask.sum(-1).max())
        return longest == self.config.original_max_position_embeddings + 1


def positions(attention_mask):
    """Position of each token among the real ones of its row."""
    return (attention_mask.long().cumsum(-1) - 1).clamp_min(0)


def misbehave():
    """What a release can do to the process that it runs in."""
    if FAULT == "exits hard":
        os._exit(3)
    if FAULT == "hangs":
        time.sleep(3600)
    if FAULT == "eats memory":
        hoard = []
        while True:
            hoard.append(bytearray(64 * 2**20))
