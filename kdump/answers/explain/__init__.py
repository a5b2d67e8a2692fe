"""Why a consumer is not given the record of an offset: proof from the files, and the causes that fit them equally."""
