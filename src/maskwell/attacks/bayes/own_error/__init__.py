"""An intruder who knows his target only roughly: errors of his own, and the true values behind them."""
