"""Whether a run has reached the reward it should; prints it, and fails if not.

check.py FOLDER            the exact reward of the last theta
check.py FOLDER sampling   the mean reward of the samples: their law is that of the chain, a little wider than pi*(theta_opt)
"""

import os
import sys

import experiment as e
import numpy as np

folder = sys.argv[1]
if sys.argv[2:] == ["sampling"]:
    reward, low, high = e.mean_reward(np.load(os.path.join(folder, "samples.npy"))), 0.280, 0.301
else:
    reward, low, high = e.exact_reward(np.atleast_2d(np.load(os.path.join(folder, "theta.npy")))[-1]), 0.289, 0.2965
print(f"{reward:.4f}")
sys.exit(not low <= reward <= high)
