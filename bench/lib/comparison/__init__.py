# SPDX-License-Identifier: MIT
"""The comparison behind bench/run: contestants in turn, pooled results, tables."""
