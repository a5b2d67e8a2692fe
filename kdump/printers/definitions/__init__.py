"""Topics, configs, ACLs, quotas and users of a metadata image as input of other tools."""
