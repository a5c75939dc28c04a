"""An intruder who knows other units too: who has which record, counted or drawn, with the parameters or without."""
