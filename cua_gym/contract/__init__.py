"""The parts of the contract suite; `cua_gym.testing` offers them."""
