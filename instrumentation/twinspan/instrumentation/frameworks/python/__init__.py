"""Plain Python: functions as nodes, a function or a block as the run.

`node` and `pipeline` do nothing until `TwinspanInstrumentor().instrument(...)` has been called.
"""

from twinspan.instrumentation.frameworks.python.blocks import step
from twinspan.instrumentation.frameworks.python.hooks import install, uninstall
from twinspan.instrumentation.frameworks.python.nodes import node, tool
from twinspan.instrumentation.frameworks.python.pipelines import pipeline
from twinspan.instrumentation.frameworks.python.together import parallel

__all__ = ["install", "node", "parallel", "pipeline", "step", "tool", "uninstall"]
