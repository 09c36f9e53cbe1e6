"""What a probe's span says of its model call: names and numbers, never words."""

from __future__ import annotations

from twinspan.instrumentation import conventions
from twinspan.instrumentation.clients.values import Completion


def span_attributes(completion: Completion) -> dict[str, object]:
    """Attributes of the call that gave this answer; what is not known is left out.

    >>> from twinspan.instrumentation.clients.values import Sampling, Usage
    >>> answer = Completion(sampling=Sampling(model="m", seed=7), usage=Usage(input_tokens=3))
    >>> for item in sorted(span_attributes(answer).items()):
    ...     print(item)
    ('gen_ai.request.model', 'm')
    ('gen_ai.request.seed', 7)
    ('gen_ai.usage.input_tokens', 3)
    """
    sampling, usage = completion.sampling, completion.usage
    known = {
        conventions.GEN_AI_REQUEST_MODEL: sampling.model,
        conventions.GEN_AI_REQUEST_TEMPERATURE: sampling.temperature,
        conventions.GEN_AI_REQUEST_SEED: sampling.seed,
        conventions.GEN_AI_INPUT_TOKENS: usage.input_tokens if usage else None,
        conventions.GEN_AI_OUTPUT_TOKENS: usage.output_tokens if usage else None,
    }
    return {name: value for name, value in known.items() if value is not None}
