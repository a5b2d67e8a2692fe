# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Bytes as hex, base64 and keyed hashes, and whether they are a value of JSON.

What C needs stands in ``spelling.pxd``. The general path spells with :mod:`kdump.primitives.encodings`
and :mod:`kdump.rows.redaction`.
"""

from libc.string cimport memcpy, memset
from kdump.kernel.sha256 cimport has_sha, mixed, mixed_two, write_digest
from kdump.kernel.words cimport hex_in_sixteens

cdef const char* _DIGITS = "0123456789abcdef"
cdef const char* _LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef char[2 * 256] _HEX  # of each byte
cdef char[2 * 4096] _PAIRS  # of letters, for twelve bits
cdef unsigned long long _HIGH_BITS = 0x8080808080808080
cdef Py_ssize_t _BLOCK = 64  # bytes that SHA-256 takes at a time
cdef int _DEEPEST = 60  # arrays and objects within each other
cdef Py_ssize_t _LONGEST = 4000  # digits of a number
cdef bint _SHA = has_sha()


def _digest(secret):
    from hashlib import sha256  # which takes as long as a module of the kernel

    return sha256(secret).digest()


def mix_words(alone):
    """Do without the processor's own SHA-256, or with it where there is one: the hashes are the same."""
    global _SHA
    _SHA = not alone and has_sha()


cdef void _pair(char* pairs, const char* each, int count) noexcept:
    """Write all pairs of ``count`` letters, in order."""
    cdef int number
    for number in range(count * count):
        pairs[2 * number] = each[number // count]
        pairs[2 * number + 1] = each[number % count]


_pair(_HEX, _DIGITS, 16)
_pair(_PAIRS, _LETTERS, 64)


cdef void hex_digits(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Write two digits for each byte."""
    cdef Py_ssize_t at
    for at in range(hex_in_sixteens(out, text, size), size):
        memcpy(out + 2 * at, _HEX + 2 * text[at], 2)


cdef unsigned char* base64(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Write four letters for three bytes (RFC 4648), the last ones padded; return the position behind them."""
    cdef unsigned int three
    while size >= 3:
        three = text[0] << 16 | text[1] << 8 | text[2]
        memcpy(out, _PAIRS + 2 * (three >> 12), 2)
        memcpy(out + 2, _PAIRS + 2 * (three & 0xFFF), 2)
        out += 4
        text += 3
        size -= 3
    if size > 0:
        three = text[0] << 16 | (text[1] << 8 if size == 2 else 0)
        memcpy(out, _PAIRS + 2 * (three >> 12), 2)
        memcpy(out + 2, _PAIRS + 2 * (three & 0xFFF), 2)
        out[3] = 61
        if size == 1:
            out[2] = 61
        out += 4
    return out


def is_json(const unsigned char[::1] text):
    """Return what json_value() says of a text."""
    return json_value(&text[0], text.shape[0]) if text.shape[0] else 0


cdef int json_value(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Return 1 for one value of JSON (RFC 8259), 0 for what is surely none, -1 for what the general path judges.

    Bytes beyond ASCII are taken for valid UTF-8, which stands in strings alone.
    """
    cdef unsigned long long objects = 0  # a bit for each open array or object, the innermost lowest
    cdef int depth = 0
    cdef Py_ssize_t at = 0
    cdef bint named
    while True:
        at = behind_spaces(text, at, size)
        if at == size:
            return 0
        if text[at] == 123 or text[at] == 91:
            named = text[at] == 123
            if depth == _DEEPEST:
                return -1
            at = behind_spaces(text, at + 1, size)
            if at < size and text[at] == (125 if named else 93):
                at += 1
            else:
                depth += 1
                objects = objects << 1 | named
                if named:
                    at = behind_name(text, at, size)
                    if at < 0:
                        return <int> at + 1
                continue
        else:
            at = behind_scalar(text, at, size)
            if at < 0:
                return <int> at + 1
        while True:  # a value ends here, and perhaps those around it
            at = behind_spaces(text, at, size)
            if depth == 0:
                return at == size
            if at == size:
                return 0
            if text[at] == 44:
                at += 1
                if objects & 1:
                    at = behind_name(text, behind_spaces(text, at, size), size)
                    if at < 0:
                        return <int> at + 1
                break
            if text[at] != (125 if objects & 1 else 93):
                return 0
            at += 1
            depth -= 1
            objects >>= 1


cdef inline Py_ssize_t behind_spaces(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position behind what may stand between tokens."""
    while at < size and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


cdef inline Py_ssize_t behind_name(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position behind a name and its colon; -1 where there is none, -2 for the general path."""
    if at >= size or text[at] != 34:
        return -1
    at = behind_string(text, at, size)
    if at < 0:
        return at
    at = behind_spaces(text, at, size)
    return at + 1 if at < size and text[at] == 58 else -1


cdef inline Py_ssize_t behind_string(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position behind a string in quotes; -1 where it is none, -2 for the general path."""
    cdef int digit
    at += 1
    while at < size and text[at] != 34:
        if text[at] < 32:
            return -1
        if text[at] != 92:
            at += 1
            continue
        at += 1
        if at >= size:
            return -1
        if text[at] == 117:
            if size - at < 5:
                return -1
            for digit in range(1, 5):
                if not is_hex(text[at + digit]):
                    return -1
            if text[at + 1] | 32 == 100 and text[at + 2] >= 56:  # a half of a character
                return -2
            at += 5
        elif is_escape(text[at]):
            at += 1
            if text[at - 1] == 92 and at < size and text[at] == 117:  # the general path takes it for an escape too
                return -2
        else:
            return -1
    return at + 1 if at < size else -1


cdef inline bint is_hex(unsigned char byte) noexcept nogil:
    return 48 <= byte <= 57 or 97 <= byte | 32 <= 102


cdef inline bint is_escape(unsigned char byte) noexcept nogil:
    """Tell whether a byte may stand behind a backslash: quote, backslash, slash, b, f, n, r, t."""
    return byte in (34, 92, 47, 98, 102, 110, 114, 116)


cdef inline Py_ssize_t behind_digits(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    while at < size and 48 <= text[at] <= 57:
        at += 1
    return at


cdef Py_ssize_t behind_scalar(const unsigned char* text, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Return the position behind a string, a number or a word; -1 where it is none, -2 for the general path."""
    cdef Py_ssize_t first = at
    cdef Py_ssize_t end
    if text[at] == 34:
        return behind_string(text, at, size)
    if text[at] == 116:
        return at + 4 if size - at >= 4 and text[at + 1] == 114 and text[at + 2] == 117 and text[at + 3] == 101 else -1
    if text[at] == 110:
        return at + 4 if size - at >= 4 and text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108 else -1
    if text[at] == 102:
        return at + 5 if (
            size - at >= 5
            and text[at + 1] == 97 and text[at + 2] == 108 and text[at + 3] == 115 and text[at + 4] == 101
        ) else -1
    if text[at] == 45:
        at += 1
    end = behind_digits(text, at, size)
    if end == at or (text[at] == 48 and end > at + 1):
        return -1
    at = end
    if at < size and text[at] == 46:
        end = behind_digits(text, at + 1, size)
        if end == at + 1:
            return -1
        at = end
    if at < size and text[at] | 32 == 101:
        at += 1
        if at < size and (text[at] == 43 or text[at] == 45):
            at += 1
        end = behind_digits(text, at, size)
        if end == at:
            return -1
        at = end
    return at if at - first <= _LONGEST else -2


cdef struct Lane:  # a hash in the making
    unsigned int[8] state
    const unsigned char* text  # the next of its whole blocks
    Py_ssize_t left  # blocks to come: of the text, of its end, and the outer one
    int padded  # blocks of the end
    Py_ssize_t at  # where the digits go, -1 where they are written
    unsigned char[64 * 2] end  # what is behind the whole blocks, padded
    unsigned char[64] outer


cdef class KeyedHash:
    """HMAC-SHA256 (RFC 2104, FIPS 180-4) with one secret. It belongs to one kernel: hashes wait here for each other."""

    def __init__(self, secret):
        cdef bytes key = (secret if len(secret) <= _BLOCK else _digest(secret)).ljust(_BLOCK, b"\0")
        cdef bytes pad
        pad = bytes([byte ^ 0x36 for byte in key])
        memcpy(self.inner, _FIRST, 32)
        mix(self.inner, pad)
        pad = bytes([byte ^ 0x5C for byte in key])
        memcpy(self.outer, _FIRST, 32)
        mix(self.outer, pad)

    cdef void digits(self, unsigned char* out, Py_ssize_t at, const unsigned char* text, Py_ssize_t size) noexcept nogil:
        """Write the 64 hex digits of the hash of a text to ``at``, when they are settled at the latest."""
        if self.count == WAITING:
            self.settle(out)
        self.waiting[self.count] = Waiting(text, size, at)
        self.count += 1

    cdef void settle(self, unsigned char* out) noexcept nogil:
        """Write all digits that are still to be written: their places are told from ``out`` on."""
        cdef Lane[2] lanes
        cdef Lane* lane
        cdef int begun = 0
        cdef int at
        for at in range(2):
            lanes[at].left = 0
            lanes[at].at = -1
            memcpy(lanes[at].outer + 32, _BEHIND_A_DIGEST, 32)
        while True:
            for at in range(2):
                if lanes[at].left == 0 and begun < self.count:
                    start(self, &lanes[at], self.waiting[begun])
                    begun += 1
            if lanes[0].left > 0 and lanes[1].left > 0:
                mix_two(lanes[0].state, next_block(self, &lanes[0]), lanes[1].state, next_block(self, &lanes[1]))
            elif lanes[0].left > 0 or lanes[1].left > 0:
                lane = &lanes[lanes[0].left == 0]
                mix(lane.state, next_block(self, lane))
            else:
                break
            for at in range(2):
                if lanes[at].left == 0 and lanes[at].at >= 0:
                    write_digest(lanes[at].outer, lanes[at].state)
                    hex_digits(out + lanes[at].at, lanes[at].outer, 32)
                    lanes[at].at = -1
        self.count = 0


cdef inline void start(KeyedHash keyed_hash, Lane* lane, Waiting waiting) noexcept nogil:
    """Begin a hash in a lane."""
    cdef Py_ssize_t rest = waiting.size % _BLOCK
    cdef unsigned long long bits = 8 * <unsigned long long> (_BLOCK + waiting.size)
    cdef unsigned char* behind
    cdef int at
    memcpy(lane.state, keyed_hash.inner, 32)
    lane.text = waiting.text
    lane.at = waiting.at
    lane.padded = 1 if rest < _BLOCK - 8 else 2
    lane.left = waiting.size // _BLOCK + lane.padded + 1
    memset(lane.end, 0, 2 * _BLOCK)
    memcpy(lane.end, waiting.text + waiting.size - rest, rest)
    lane.end[rest] = 0x80
    behind = lane.end + _BLOCK * lane.padded
    for at in range(8):
        behind[-1 - at] = <unsigned char> (bits >> (8 * at))


cdef inline const unsigned char* next_block(KeyedHash keyed_hash, Lane* lane) noexcept nogil:
    """Return the next block of a lane, whose state is made ready for it."""
    lane.left -= 1
    if lane.left > lane.padded:
        lane.text += _BLOCK
        return lane.text - _BLOCK
    if lane.left > 0:
        return lane.end + _BLOCK * (lane.padded - lane.left)
    write_digest(lane.outer, lane.state)
    memcpy(lane.state, keyed_hash.outer, 32)
    return lane.outer


cdef unsigned char[32] _BEHIND_A_DIGEST  # in the block of the outer hash: its padding, and the bits of both blocks
memset(_BEHIND_A_DIGEST, 0, 32)
_BEHIND_A_DIGEST[0] = 0x80
_BEHIND_A_DIGEST[30] = 8 * (64 + 32) >> 8
cdef unsigned int[8] _FIRST = [
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19
]
cdef unsigned int[64] _ROUNDS = [
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
]


cdef inline unsigned int word_at(const unsigned char* text) noexcept nogil:
    """Return four bytes as a number, the highest first: compilers make one instruction of this."""
    return <unsigned int> text[0] << 24 | <unsigned int> text[1] << 16 | <unsigned int> text[2] << 8 | text[3]


cdef inline unsigned int turned(unsigned int word, int by) noexcept nogil:
    return word >> by | word << (32 - by)


cdef inline void step(
    unsigned int a, unsigned int b, unsigned int c, unsigned int* d,
    unsigned int e, unsigned int f, unsigned int g, unsigned int* h, unsigned int word,
) noexcept nogil:
    """Do one round; the letters are those of FIPS 180-4."""
    h[0] += (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (g ^ (e & (f ^ g))) + word
    d[0] += h[0]
    h[0] += (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) | (c & (a | b)))


cdef void mix(unsigned int* state, const unsigned char* block) noexcept nogil:
    """Take one block into the state."""
    if _SHA:
        mixed(state, block, _ROUNDS)
    else:
        mix_in_words(state, block)


cdef void mix_two(
    unsigned int* state, const unsigned char* block, unsigned int* other, const unsigned char* its_block
) noexcept nogil:
    """Take one block into each of two states."""
    if _SHA:
        mixed_two(state, block, other, its_block, _ROUNDS)
    else:
        mix_in_words(state, block)
        mix_in_words(other, its_block)


cdef void mix_in_words(unsigned int* state, const unsigned char* block) noexcept nogil:
    cdef unsigned int[64] w
    cdef int t
    cdef unsigned int a = state[0], b = state[1], c = state[2], d = state[3]
    cdef unsigned int e = state[4], f = state[5], g = state[6], h = state[7]
    for t in range(16):
        w[t] = word_at(block + 4 * t)
    for t in range(16, 64):
        w[t] = (
            (turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ w[t - 2] >> 10)
            + w[t - 7]
            + (turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ w[t - 15] >> 3)
            + w[t - 16]
        )
    for t in range(0, 64, 8):
        step(a, b, c, &d, e, f, g, &h, _ROUNDS[t] + w[t])
        step(h, a, b, &c, d, e, f, &g, _ROUNDS[t + 1] + w[t + 1])
        step(g, h, a, &b, c, d, e, &f, _ROUNDS[t + 2] + w[t + 2])
        step(f, g, h, &a, b, c, d, &e, _ROUNDS[t + 3] + w[t + 3])
        step(e, f, g, &h, a, b, c, &d, _ROUNDS[t + 4] + w[t + 4])
        step(d, e, f, &g, h, a, b, &c, _ROUNDS[t + 5] + w[t + 5])
        step(c, d, e, &f, g, h, a, &b, _ROUNDS[t + 6] + w[t + 6])
        step(b, c, d, &e, f, g, h, &a, _ROUNDS[t + 7] + w[t + 7])
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h
