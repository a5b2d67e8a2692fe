"""Why a consumer is not given the record of an offset: what the files prove, and what they cannot tell apart."""
