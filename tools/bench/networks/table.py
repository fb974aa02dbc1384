"""Networks by name, in the sizes of their authors or with fewer layers of those sizes."""

import images
import language
import signals

NETWORKS = {**language.NETWORKS, **images.NETWORKS, **signals.NETWORKS}
