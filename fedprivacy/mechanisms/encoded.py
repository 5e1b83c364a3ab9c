"""Noise on encoded updates: Gaussian, or Student t, accounted for over the code book."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.encoded_updates import LEAST_DEGREES, MOST_DEGREES, EncodedStudentDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.central import CentralMechanism, Settings
from fedprivacy.mechanisms.encoding import Encoder
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.options import EncodingOptions, StudentOptions


@dataclass(frozen=True)
class EncodedGaussian(Gaussian):
    """Gaussian noise on updates that were clipped and encoded.

    Codes have norm at most C, and two of them differ by at most 2C (a code and its opposite do), so the event
    is that of Gaussian noise on clipped updates: encoding saves no noise here.

    Args:
        clipping_norm: C.
        noise_multiplier: z, the noise's standard deviation / C.
        encoding: As `Encoder` has it, with what follows.
        coordinates: As `Encoder` has it.
        dimension: As `Encoder` has it.
        levels: As `Encoder` has it.
    """

    encoding: str
    coordinates: int
    dimension: int
    levels: int = 0
    name: ClassVar[str] = "encoded-gaussian"
    title: ClassVar[str] = "Gaussian on encoded updates"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.encoder  # made now, so that an impossible encoding is refused before any message

    @classmethod
    def of_scenario(cls, settings: Settings) -> Self:
        """As `CentralMechanism` has it."""
        return cls(settings.clipping_norm, settings.noise_multiplier, *_code(settings))

    @cached_property
    def encoder(self) -> Encoder:
        """Encodes a clipped update before the noise is added."""
        return Encoder(self.encoding, self.clipping_norm, self.coordinates, self.dimension, self.levels)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"noise multiplier {self.noise_multiplier:.4g} on {_words(self.encoder)}"


@dataclass(frozen=True)
class EncodedStudent(CentralMechanism):
    """Independent Student t noise in each coordinate of a sum of updates that were clipped and encoded.

    Its cost depends on the coordinates in which two codes differ and on the differences, which are few cases
    for codes of -a, 0 and a (proof: `fedprivacy.accounting.encoded_updates`). At the same epsilon its
    variance is larger: against moves that are small in each coordinate, nu (nu + 1)/((nu - 2)(nu + 3)) times
    that of Gaussian noise, 1.071 for 9 degrees of freedom.

    Args:
        clipping_norm: C.
        noise_multiplier: z, the noise's standard deviation / C, like that of Gaussian noise; 0 means
            noise before calibration.
        degrees: nu, of freedom, from 3.
        encoding: "signs" or "top-k"; as `Encoder` has it, with what follows.
        coordinates: As `Encoder` has it.
        dimension: As `Encoder` has it.

    Raises:
        InputError: A value is out of range.

    Source: Student t noise on encoded gradients is the idea of Nasr, Shokri and Houmansadr 2020; the code
    books, their account and its proof are ours.
    """

    clipping_norm: float
    noise_multiplier: float
    degrees: float
    encoding: str
    coordinates: int
    dimension: int
    name: ClassVar[str] = "encoded-student-t"
    title: ClassVar[str] = "Student t on encoded updates"

    def __post_init__(self) -> None:
        _ = Gaussian(self.clipping_norm, self.noise_multiplier)  # the same ranges
        if not LEAST_DEGREES <= self.degrees <= MOST_DEGREES:
            raise InputError(
                f"degrees = {self.degrees:g}: must be from {LEAST_DEGREES:g} to {MOST_DEGREES:g}; 9 is usual."
            )
        if not self.encoder.ternary:
            raise InputError(f'{self.name} needs encoding "signs" or "top-k", not {self.encoding!r}.')

    @classmethod
    def of_scenario(cls, settings: Settings) -> Self:
        """As `CentralMechanism` has it."""
        degrees = settings.options(StudentOptions).degrees
        encoding, coordinates, dimension, _ = _code(settings)
        return cls(
            settings.clipping_norm,
            settings.noise_multiplier,
            9.0 if degrees is None else degrees,  # of Nasr et al. 2020
            encoding,
            coordinates,
            dimension,
        )

    @cached_property
    def encoder(self) -> Encoder:
        """Encodes a clipped update before the noise is added."""
        return Encoder(self.encoding, self.clipping_norm, self.coordinates, self.dimension)

    @property
    def standard_deviation(self) -> float:
        """Of the noise in each coordinate, in the units of the update."""
        return self.noise_multiplier * self.clipping_norm

    @property
    def scale(self) -> float:
        """The scale of the Student t noise."""
        # A standard Student t variable of nu degrees has variance nu/(nu - 2).
        return self.standard_deviation * math.sqrt((self.degrees - 2) / self.degrees)

    def draw(self, dimension: int, stream: np.random.Generator) -> NDArray[np.float64]:
        """Noise for one release, shape (dimension,).

        Args:
            dimension: The number of coordinates.
            stream: The random stream of this release, and of no other.
        """
        noise = stream.standard_t(self.degrees, dimension)
        noise *= self.scale
        return noise

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return (
            f"Student t noise of {self.degrees:g} degrees, multiplier {self.noise_multiplier:.4g}, "
            f"on {_words(self.encoder)}"
        )

    def event(self) -> dp.DpEvent:
        """The event of one release, as the accountant reads it."""
        return EncodedStudentDpEvent(self.noise_multiplier, self.degrees, self.coordinates, self.dimension)

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same mechanism at another noise multiplier."""
        return replace(self, noise_multiplier=noise_multiplier)


def _code(settings: Settings) -> tuple[str, int, int, int]:
    """The encoding of a scenario: its kind, coordinates, dimension and levels."""
    options, dimension = settings.options(EncodingOptions), settings.dimension()
    kind, coordinates, levels = str(options.encoding), dimension, 0
    if kind == "top-k":
        share = 0.05 if options.encoding_share is None else options.encoding_share
        coordinates = max(1, round(share * dimension))
    if kind == "levels":
        levels = options.encoding_levels or 2
    return kind, coordinates, dimension, levels


def _words(encoder: Encoder) -> str:
    if encoder.kind == "top-k":
        return f"the signs of the {encoder.coordinates} largest of {encoder.dimension} coordinates"
    return "signs" if encoder.kind == "signs" else f"coordinates in steps of {encoder.step:.3g}"
