from .explanations import draw_explanation as draw_explanation
from .graphs import draw_trellis as draw_trellis
from .trade_offs import draw_curve as draw_curve
from .trade_offs import draw_trade_off as draw_trade_off
from .trade_offs import draw_widths as draw_widths
