# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True, initializedcheck=False
"""Digests of keys and values: keyed SHA-256 hashes that replace redacted texts, and hash tables of keys by SipHash.

A keyed hash is HMAC-SHA256; the general path is :mod:`kdump.rows.redaction`.

A table of keys stores numbers and a digest of 16 bytes for each key. The digest is SipHash-2-4 with 128 bits and a
random secret, so that keys in a hostile file do not collide. A table is one block of memory with open addressing,
at most four fifths full. The general path is :mod:`kdump.answers.compaction.key_tables`.
"""

from kdump.kernel.batches import OTHERS
from kdump.kernel.records import RECORD_NUMBERS, slots

cimport cython
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset
from kdump.kernel.records cimport Cursor
from kdump.kernel.sha256 cimport has_sha, mixed, mixed_two, write_digest
from kdump.kernel.texts cimport hex_digits
from kdump.kernel.words cimport ordered

cdef Py_ssize_t _BLOCK = 64  # size in bytes of a block of SHA-256
cdef bint _SHA = has_sha()


def _digest(secret):
    from hashlib import sha256  # its import takes as long as that of a kernel module

    return sha256(secret).digest()


def mix_words(alone):
    """Choose the code for SHA-256: the processor's instructions if it has them, plain C if ``alone`` is true."""
    global _SHA
    _SHA = not alone and has_sha()


cdef struct Lane:  # an unfinished hash
    unsigned int[8] state
    const unsigned char* text  # the next whole block of the text
    Py_ssize_t left  # number of remaining blocks: of the text, of ``end``, and the outer block
    int padded  # number of blocks of ``end``
    Py_ssize_t at  # position for the digits; -1 if they have been written
    unsigned char[64 * 2] end  # the bytes after the whole blocks, with padding
    unsigned char[64] outer


cdef class KeyedHash:
    """HMAC-SHA256 (RFC 2104, FIPS 180-4) with one secret. Texts are collected, and hashed two at a time."""

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
        """Collect a text. Its hash is written as 64 hex digits at position ``at`` by the next :meth:`settle`."""
        if self.count == WAITING:
            self.settle(out)
        self.waiting[self.count] = Waiting(text, size, at)
        self.count += 1

    cdef void settle(self, unsigned char* out) noexcept nogil:
        """Hash the collected texts, and write the hex digits. Their positions count from ``out``."""
        cdef Lane[2] lanes
        cdef Lane* lane
        cdef int begun = 0
        cdef int at
        for at in range(2):
            lanes[at].left = 0
            lanes[at].at = -1
            memcpy(lanes[at].outer + 32, _DIGEST_PADDING, 32)
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
    cdef Py_ssize_t rest = waiting.size % _BLOCK
    cdef unsigned long long bits = 8 * <unsigned long long> (_BLOCK + waiting.size)
    cdef unsigned char* end
    cdef int at
    memcpy(lane.state, keyed_hash.inner, 32)
    lane.text = waiting.text
    lane.at = waiting.at
    lane.padded = 1 if rest < _BLOCK - 8 else 2
    lane.left = waiting.size // _BLOCK + lane.padded + 1
    memset(lane.end, 0, 2 * _BLOCK)
    memcpy(lane.end, waiting.text + waiting.size - rest, rest)
    lane.end[rest] = 0x80
    end = lane.end + _BLOCK * lane.padded
    for at in range(8):
        end[-1 - at] = <unsigned char> (bits >> (8 * at))


cdef inline const unsigned char* next_block(KeyedHash keyed_hash, Lane* lane) noexcept nogil:
    """Return the next block of 64 bytes of an unfinished hash, and prepare the hash's state for it."""
    lane.left -= 1
    if lane.left > lane.padded:
        lane.text += _BLOCK
        return lane.text - _BLOCK
    if lane.left > 0:
        return lane.end + _BLOCK * (lane.padded - lane.left)
    write_digest(lane.outer, lane.state)
    memcpy(lane.state, keyed_hash.outer, 32)
    return lane.outer


cdef unsigned char[32] _DIGEST_PADDING  # the rest of the outer hash's block: padding and the number of bits
memset(_DIGEST_PADDING, 0, 32)
_DIGEST_PADDING[0] = 0x80
_DIGEST_PADDING[30] = 8 * (64 + 32) >> 8
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
    """Return four bytes as a number, the highest first. Compilers turn this into one instruction."""
    return <unsigned int> text[0] << 24 | <unsigned int> text[1] << 16 | <unsigned int> text[2] << 8 | text[3]


cdef inline unsigned int turned_word(unsigned int word, int by) noexcept nogil:
    return word >> by | word << (32 - by)


cdef inline void step(
    unsigned int a, unsigned int b, unsigned int c, unsigned int* d,
    unsigned int e, unsigned int f, unsigned int g, unsigned int* h, unsigned int word,
) noexcept nogil:
    """Do one round. The letters are those of FIPS 180-4."""
    h[0] += (turned_word(e, 6) ^ turned_word(e, 11) ^ turned_word(e, 25)) + (g ^ (e & (f ^ g))) + word
    d[0] += h[0]
    h[0] += (turned_word(a, 2) ^ turned_word(a, 13) ^ turned_word(a, 22)) + ((a & b) | (c & (a | b)))


cdef void mix(unsigned int* state, const unsigned char* block) noexcept nogil:
    if _SHA:
        mixed(state, block, _ROUNDS)
    else:
        mix_in_words(state, block)


cdef void mix_two(
    unsigned int* state, const unsigned char* block, unsigned int* other, const unsigned char* its_block
) noexcept nogil:
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
            (turned_word(w[t - 2], 17) ^ turned_word(w[t - 2], 19) ^ w[t - 2] >> 10)
            + w[t - 7]
            + (turned_word(w[t - 15], 7) ^ turned_word(w[t - 15], 18) ^ w[t - 15] >> 3)
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


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define kdump_prefetch(place) __builtin_prefetch(place)
    #else
    #define kdump_prefetch(place) ((void) 0)
    #endif
    """
    void prefetch "kdump_prefetch"(const void* place) noexcept nogil

ctypedef unsigned long long Word

cdef inline Word turned(Word word, int by) noexcept nogil:
    return word << by | word >> (64 - by)

cdef struct Fact:
    long long offset
    Word low
    Word high
    int size
    int kind

cdef int _KEYED = 1
cdef int _VALUED = 2
cdef int _END = 4
cdef int _OFFSET = RECORD_NUMBERS.index("offset")
cdef int _KEY_SIZE = RECORD_NUMBERS.index("key_size")
cdef int _VALUE_SIZE = RECORD_NUMBERS.index("value_size")
cdef int _LAST_OFFSET = slots(OTHERS)["last_offset"]
cdef Py_ssize_t _FIRST_ROOM = 1 << 10
cdef Py_ssize_t _AHEAD = 12  # a slot is prefetched for the fact that comes this many facts later
cdef Py_ssize_t _FEW = 1 << 20  # number of slots up to which a table grows fast
cdef Py_ssize_t _MOST_SLOTS = (1 << 32) - 1  # a slot is found with 32 bits of the digest
cdef enum Why:  # the outcomes of a record, numbered as in REASONS of key_tables
    STAYS = 0
    SUPERSEDED = 1
    TOMBSTONE = 2
    ABORTED = 3
    KEYLESS = 4
    REASONS = 6


cdef class FactBuffer(Cursor):
    """Facts of consecutive records: offset, size in bytes, digest of the key, and whether the value is not null.

    The end of each batch has an item of its own. Facts are kept until :meth:`clear`.
    """

    cdef Fact* facts
    cdef Py_ssize_t count
    cdef Py_ssize_t room
    cdef Word secret_low
    cdef Word secret_high
    cdef Word* slots
    cdef Py_ssize_t capacity
    cdef Py_ssize_t bound
    cdef Py_ssize_t used
    cdef Py_ssize_t words
    cdef Word number
    cdef Word of

    def __cinit__(self):
        self.facts = NULL
        self.slots = NULL
        self.count = self.room = self.capacity = self.used = 0

    def __init__(self, secret):
        """``secret`` is the key of the digests, 16 bytes."""
        self.begin_table(0, (0, 1, secret), 3)

    def __dealloc__(self):
        free(self.facts)
        free(self.slots)

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        """Return offset, size, digest (None without a key), has value; for the end of a batch (offset,)."""
        if not 0 <= at < self.count:
            raise IndexError(at)
        cdef Fact fact = self.facts[at]
        if fact.kind & _END:
            return (fact.offset,)
        digest = (int(fact.low) | int(fact.high) << 64).to_bytes(16, "little")
        return fact.offset, fact.size, digest if fact.kind & _KEYED else None, bool(fact.kind & _VALUED)

    @property
    def keys(self):
        """The number of keys in the table."""
        return self.used

    def clear(self):
        """Remove all facts. The table of keys stays."""
        self.count = 0

    def add(self, offset, size, key, has_value):
        cdef const unsigned char[::1] text = key or b"\0"
        cdef Fact* fact
        self.reserve()
        fact = &self.facts[self.count]
        fact.offset, fact.size = offset, size
        fact.kind = (0 if key is None else _KEYED) | (_VALUED if has_value else 0)
        if key is not None:
            self.digest(fact, &text[0], len(key))
        self.count += 1

    def end_batch(self, last_offset):
        self.reserve()
        self.facts[self.count].offset = last_offset
        self.facts[self.count].kind = _END
        self.count += 1

    def read_batches(self, most):
        """Add the facts of the next batches of :meth:`stack`, until there are at least ``most`` facts.

        Return True if the next batch is not well-formed. ``row`` is then the row of this batch.
        """
        cdef Py_ssize_t before
        cdef Py_ssize_t until = most
        cdef bint good
        self.data = self.block
        while self.row < self.rows and self.count < until:
            before = self.count
            good = False
            with nogil:
                if self.next_batch():
                    while self.left > 0 and self.read():
                        self.fact()
                        self.left -= 1
                    good = self.left == 0
            if not good:
                self.count = before
                self.row -= 1
                return True
            self.end_batch(self.values[_LAST_OFFSET])
        return False

    def read_records(self, most):
        """Add the facts of the next ``most`` records of a batch. Return whether these records are well-formed."""
        cdef Py_ssize_t left = most
        with nogil:
            while left > 0 and self.left > 0 and self.read():
                self.fact()
                self.left -= 1
                left -= 1
        return left == 0 or self.left == 0

    cdef bint reserve(self) except -1 nogil:
        cdef Py_ssize_t room
        cdef Fact* facts
        if self.count == self.room:
            room = max(_FIRST_ROOM, 2 * self.room)
            facts = <Fact*> realloc(self.facts, room * sizeof(Fact))
            if facts == NULL:
                with gil:
                    raise MemoryError
            self.facts, self.room = facts, room
        return True

    @cython.boundscheck(False)
    cdef bint fact(self) except -1 nogil:
        cdef Fact* fact
        cdef long long size = self.values[_KEY_SIZE]
        self.reserve()
        fact = &self.facts[self.count]
        fact.offset = self.values[_OFFSET]
        fact.size = <int> (self.at - self.start)
        fact.kind = _VALUED if self.values[_VALUE_SIZE] >= 0 else 0
        if size >= 0:
            fact.kind |= _KEYED
            self.digest(fact, &self.data[self.key_at], size)
        self.count += 1
        return True

    cdef void digest(self, Fact* fact, const unsigned char* key, Py_ssize_t size) noexcept nogil:
        """Write the digest of a key: SipHash-2-4 of 128 bits. It is never zero, because zero means a free slot."""
        cdef Word[4] state
        cdef Word word = 0
        cdef Py_ssize_t left = size
        cdef int at
        state[0] = self.secret_low ^ 0x736F6D6570736575ULL
        state[1] = self.secret_high ^ 0x646F72616E646F6DULL ^ 0xEE
        state[2] = self.secret_low ^ 0x6C7967656E657261ULL
        state[3] = self.secret_high ^ 0x7465646279746573ULL
        while left >= 8:
            memcpy(&word, key, 8)
            absorb(state, ordered(word))
            key += 8
            left -= 8
        word = <Word> size << 56
        for at in range(<int> left):
            word |= <Word> key[at] << 8 * at
        absorb(state, word)
        state[2] ^= 0xEE
        sip_rounds(state, 4)
        fact.low = state[0] ^ state[1] ^ state[2] ^ state[3]
        state[1] ^= 0xDD
        sip_rounds(state, 4)
        fact.high = state[0] ^ state[1] ^ state[2] ^ state[3]
        if fact.low == 0 and fact.high == 0:
            fact.high = 1

    cdef begin_table(self, keys, part, Py_ssize_t words):
        """Start an empty table for about ``keys`` keys. A slot has ``words`` numbers of 64 bits, first the digest.

        ``part``: the number of the table, the count of tables that divide the keys, and the secret of the digests.
        """
        self.number, self.of, secret = part
        if len(secret) != 16:
            raise ValueError("a secret has 16 bytes")
        self.secret_low, self.secret_high = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")
        self.capacity = self.used = 0
        self.words = words
        self.bound = min(keys + keys // 4 + 16, _MOST_SLOTS)
        self.resize(min(self.bound, _FIRST_ROOM))

    cdef inline bint is_ours(self, Fact* fact) noexcept nogil:
        """Return whether this table holds the key: keys may be divided between several tables by their digests."""
        return self.of == 1 or fact.high % self.of == self.number

    cdef inline Word* home(self, Word low) noexcept nogil:
        """Return the first slot to search for a digest."""
        return self.slots + ((low >> 32) * <Word> self.capacity >> 32) * <Word> self.words

    cdef inline Word* slot(self, Word low, Word high) noexcept nogil:
        """Return the slot of a digest, or the free slot for it."""
        cdef Word* slot = self.home(low)
        while (slot[0] != low or slot[1] != high) and (slot[0] | slot[1]) != 0:
            slot += self.words
            if slot == self.slots + self.capacity * self.words:
                slot = self.slots
        return slot

    cdef Word* take(self, Fact* fact) except NULL nogil:
        """Return the slot of a key. A new slot has the digest and zeros."""
        cdef Word* slot = self.slot(fact.low, fact.high)
        if slot[0] | slot[1]:
            return slot
        if 5 * self.used >= 4 * self.capacity:
            self.grow()
            slot = self.slot(fact.low, fact.high)
        slot[0], slot[1] = fact.low, fact.high
        self.used += 1
        return slot

    cdef bint grow(self) except -1 nogil:
        """Multiply the number of slots by 4, from _FEW on by 1.5, but first stop at ``bound``."""
        cdef Py_ssize_t more = self.capacity * 4 if self.capacity < _FEW else self.capacity + self.capacity // 2
        if self.capacity < self.bound < more:
            more = self.bound
        return self.resize(more)

    cdef bint resize(self, Py_ssize_t capacity) except -1 nogil:
        cdef Word* old = self.slots
        cdef Word* end = old + self.capacity * self.words
        cdef Word* at = old
        cdef Word* new = NULL
        if capacity <= _MOST_SLOTS:
            new = <Word*> calloc(capacity * self.words, sizeof(Word))
        if new == NULL:
            with gil:
                raise MemoryError
        self.slots, self.capacity = new, capacity
        while at != end:
            if at[0] | at[1]:
                memcpy(self.slot(at[0], at[1]), at, self.words * sizeof(Word))
            at += self.words
        free(old)
        return True


cdef inline void absorb(Word* state, Word word) noexcept nogil:
    state[3] ^= word
    sip_rounds(state, 2)
    state[0] ^= word


cdef inline void sip_rounds(Word* state, int rounds) noexcept nogil:
    cdef Word a = state[0], b = state[1], c = state[2], d = state[3]
    cdef int step
    for step in range(rounds):
        a += b
        c += d
        b = turned(b, 13) ^ a
        d = turned(d, 16) ^ c
        a = turned(a, 32)
        c += b
        a += d
        b = turned(b, 17) ^ c
        d = turned(d, 21) ^ a
        c = turned(c, 32)
    state[0], state[1], state[2], state[3] = a, b, c, d


@cython.final
cdef class OffsetTable(FactBuffer):
    """The newest offset of each of at most ``most`` keys. ``latest``: the last offset of a key or end of a batch."""

    cdef public long long latest
    cdef public Py_ssize_t most
    cdef long long since

    def __init__(self, since, most, keys, part):
        self.begin_table(min(keys, most), part, 3)
        self.since, self.most, self.latest = since, most, since - 1

    def put(self, begin, end):
        """Add the facts ``begin`` to ``end`` (exclusive); stop at a key if the table is full. Return the next index."""
        cdef Py_ssize_t at = begin
        cdef Py_ssize_t stop = min(end, self.count)
        cdef Fact* fact
        with nogil:
            while at < stop:
                fact = &self.facts[at]
                if at + _AHEAD < stop:
                    prefetch(self.home(self.facts[at + _AHEAD].low))
                if fact.offset >= self.since:
                    if fact.kind & _KEYED:
                        if self.used >= self.most:
                            break
                        if self.is_ours(fact):
                            self.take(fact)[2] = <Word> fact.offset
                    if fact.kind & (_KEYED | _END):
                        self.latest = fact.offset
                at += 1
        return at

    def judge(self, *, discards, keeps, listed):
        """Count the records that compaction keeps and removes, like ``OffsetMap.judge`` of the general path."""
        cdef bint drops = discards
        cdef bint spares = keeps
        cdef bint lists = listed
        cdef long long[6] gone
        cdef long long records = 0
        cdef long long tombstones = 0
        cdef long long size = 0
        cdef Py_ssize_t at
        cdef int why
        cdef Fact* fact
        cdef list removed = []
        for at in range(REASONS):
            gone[at] = 0
        with nogil:
            for at in range(self.count):
                fact = &self.facts[at]
                if at + _AHEAD < self.count:
                    prefetch(self.home(self.facts[at + _AHEAD].low))
                if fact.kind & _END or (fact.offset > self.latest and not drops):
                    continue
                if not (self.is_ours(fact) if fact.kind & _KEYED else self.number == 0):
                    continue
                why = ABORTED if drops else self.why(fact, spares)
                records += 1
                tombstones += fact.kind & _VALUED == 0
                gone[why] += 1
                if why == SUPERSEDED:
                    size += fact.size
                if lists and why != STAYS:
                    with gil:
                        removed.append((fact.offset, why))
        return records, tombstones, [gone[at] for at in range(REASONS)], size, removed

    cdef inline int why(self, Fact* fact, bint keeps) noexcept nogil:
        """Return the reason for which compaction removes a record, or STAYS."""
        cdef Word* slot
        if not fact.kind & _KEYED:
            return KEYLESS
        slot = self.slot(fact.low, fact.high)
        if (slot[0] | slot[1]) != 0 and fact.offset < <long long> slot[2]:
            return SUPERSEDED
        return STAYS if fact.kind & _VALUED or keeps else TOMBSTONE


@cython.final
cdef class SizeTable(FactBuffer):
    """The number of records and bytes of each key, and the numbers of the batch and record in which it is first."""

    cdef Word batch
    cdef Word record

    def __init__(self, keys, part):
        self.begin_table(keys, part, 6)
        self.batch = self.record = 0

    def measure(self):
        """Add the records of the facts to the counts of their keys."""
        cdef Py_ssize_t at
        cdef Fact* fact
        cdef Word* slot
        with nogil:
            for at in range(self.count):
                fact = &self.facts[at]
                if at + _AHEAD < self.count:
                    prefetch(self.home(self.facts[at + _AHEAD].low))
                if fact.kind & _END:
                    self.batch += 1
                    self.record = 0
                    continue
                if fact.kind & _KEYED and self.is_ours(fact):
                    slot = self.take(fact)
                    if slot[2] == 0:
                        slot[4], slot[5] = self.batch, self.record
                    slot[2] += 1
                    slot[3] += fact.size
                self.record += 1

    def largest(self, most):
        """Return (bytes, -batch, -record, records) of the ``most`` keys with the most bytes, in any order."""
        from heapq import heappush, heappushpop  # few runs need a heap

        cdef list found = []
        cdef Py_ssize_t at
        cdef Word least = 0
        cdef Word* slot
        for at in range(self.capacity if most else 0):
            slot = self.slots + at * self.words
            if slot[0] | slot[1] and slot[3] >= least:
                one = (slot[3], -<long long> slot[4], -<long long> slot[5], slot[2])
                if len(found) < most:
                    heappush(found, one)
                else:
                    heappushpop(found, one)
                if len(found) == most:
                    least = found[0][0]
        return found
