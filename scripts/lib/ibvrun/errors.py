# SPDX-License-Identifier: MIT
"""The one exception for everything that a user can mend."""

STATUS_USAGE = 2      # bad command line, or something that is not installed
STATUS_TIMEOUT = 124  # --timeout, as timeout(1)
STATUS_NOT_RUN = 126  # a rank could not be started
STATUS_NODE_LOST = 255  # a node was lost, as ssh has it


class UserError(Exception):
    """Its text names the value and the remedy; ibvrun prints it and exits with status."""

    def __init__(self, text, status=STATUS_USAGE):
        super().__init__(text)
        self.status = status
