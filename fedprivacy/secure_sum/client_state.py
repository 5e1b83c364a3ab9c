"""The state of a client between two steps, for a node whose process ends after each message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedprivacy.secure_sum.messages import AdvertisedKeys, Checked


@dataclass(frozen=True)
class ClientState(Checked):
    """All that a client has of its round; its repr shows no secret.

    `Client.hand_over` makes it, and ends the client that it comes from. Whoever has the state must see to it
    that it continues once (`stored_client`): a second copy would answer a step a second time.

    Args:
        phase: The next step (`transcript.Phase`); after the last one, or a refusal, nothing else is set.
        sealing_secret: The private key of shares, until the input is masked.
        mask_secret: The private key of masks, until then.
        seed: Of the self mask, until then.
        keys: The advertised keys, before they are listed those of this client.
        view: Of them, once they are listed.
        seed_shares: The shares of seeds, by client.
        key_shares: The shares of mask keys, by client.
        survivors: Those that this client signed.
    """

    phase: int
    sealing_secret: bytes = field(default=b"", repr=False)
    mask_secret: bytes = field(default=b"", repr=False)
    seed: bytes = field(default=b"", repr=False)
    keys: tuple[AdvertisedKeys, ...] = ()
    view: bytes = b""
    seed_shares: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    key_shares: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    survivors: tuple[int, ...] = ()
