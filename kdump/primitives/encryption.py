"""Decrypts segments in remote storage: AES-GCM with keys that are encrypted by RSA.

Sources: Aiven's ``AesEncryptionProvider`` (12 bytes of IV, the encrypted bytes, 16 bytes of tag) and
``RsaEncryptionProvider`` (OAEP and MGF1 with SHA3-512). The padding is removed here (RFC 8017, 7.1.2), because OAEP of
the optional library ``cryptography`` does not support SHA3.
"""

from __future__ import annotations

from hashlib import sha3_512
from typing import Any, Final

from kdump.errors import DamageError, UsageError

IV: Final = 12
TAG: Final = 16
DIGEST: Final = 64
KEY_SIZES: Final = (16, 24, 32)
"""Sizes in bytes: the initialization vector before the data, the tag after it, a SHA3-512 digest, AES keys."""


class PrivateKey:
    """The private key of an RSA key pair, read from PEM text."""

    def __init__(self, pem: bytes, name: str) -> None:
        """Raise UsageError if ``pem`` holds no unencrypted RSA key, or without cryptography. ``name``: for messages."""
        try:
            from cryptography.exceptions import UnsupportedAlgorithm
            from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
            from cryptography.hazmat.primitives.serialization import load_pem_private_key
        except ImportError:
            raise UsageError("encrypted segments need cryptography: pip install 'kdump[tiered]'") from None
        try:
            key = load_pem_private_key(pem, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as reason:
            raise UsageError(f"{name} does not hold a readable private key (PEM): {reason}") from None
        if not isinstance(key, RSAPrivateKey):
            raise UsageError(f"{name} holds a key that is not RSA")
        numbers = key.private_numbers()
        self._modulus, self._exponent = numbers.public_numbers.n, numbers.d

    def data_key(self, encrypted: bytes) -> bytes:
        """Return a decrypted AES key. Raises DamageError."""
        size = self._modulus.bit_length() + 7 >> 3
        number = int.from_bytes(encrypted, "big")
        found = None
        if len(encrypted) == size and number < self._modulus:
            found = _without_padding(pow(number, self._exponent, self._modulus).to_bytes(size, "big"))
        if found is None:
            raise DamageError("encryption", "the key pair given does not decrypt the data key")
        if len(found) not in KEY_SIZES:
            raise DamageError("encryption", "the data key is not an AES key", expected="32 bytes", found=len(found))
        return found


def _without_padding(block: bytes) -> bytes | None:
    """Return the content of an OAEP block with an empty label; None if the padding is wrong."""
    seed, data = block[1 : 1 + DIGEST], block[1 + DIGEST :]
    seed = _xor(seed, _mask(data, DIGEST))
    data = _xor(data, _mask(seed, len(data)))
    padding, one, message = data[DIGEST:].partition(b"\1")
    fits = block[:1] == b"\0" and data[:DIGEST] == sha3_512().digest() and bool(one) and not padding.strip(b"\0")
    return message if fits else None


def _mask(seed: bytes, size: int) -> bytes:
    counts = range(-(-size // DIGEST))
    return b"".join(sha3_512(seed + count.to_bytes(4, "big")).digest() for count in counts)[:size]


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))


def decrypt(data: bytes, key: bytes, aad: bytes) -> bytes:
    """Return the decrypted bytes. Raises DamageError for short data, and if the tag does not fit ``key``, ``aad``."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(data) < IV + TAG:
        raise DamageError(
            "encryption", "it is too short for encrypted data", expected=f"{IV + TAG} bytes", found=len(data)
        )
    cipher: Any = AESGCM(key)
    try:
        plain: bytes = cipher.decrypt(data[:IV], data[IV:], aad)
    except InvalidTag:
        raise DamageError("encryption", "its authentication tag is wrong, so the bytes or the key are wrong") from None
    return plain
