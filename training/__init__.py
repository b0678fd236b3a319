"""Recipes and the commands that train and use them; installed as `keras_transformer_training`."""
