# A date in the Gregorian calendar.

cdef struct Date:
    long long year
    long long month  # from 1
    long long day  # from 1


# Return the date of a day since 1970; it may not be before the 1st of March of the year 0. The computation uses years
# that start in March, so that the leap day is the last day of a year.
cdef inline Date date_of(long long day) noexcept nogil:
    day += 719_468  # days from the 1st of March of the year 0 to 1970
    cdef Date date
    cdef long long cycle = day // 146_097  # days of 400 years
    day %= 146_097
    cdef long long year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    cdef long long month = (5 * day + 2) // 153  # 0 is March; five months have 153 days
    date.day = day - (153 * month + 2) // 5 + 1
    month += 3
    year += 400 * cycle
    if month > 12:
        month -= 12
        year += 1
    date.year, date.month = year, month
    return date
