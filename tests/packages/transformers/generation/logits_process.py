"""Logits processors, as far as the check uses them."""


class LogitsProcessor:
    """Sees the prefix and the logits of each step, and returns logits."""


class LogitsProcessorList(list):
    """Several, one after the other."""

    def __call__(self, input_ids, scores):
        for processor in self:
            scores = processor(input_ids, scores)
        return scores
