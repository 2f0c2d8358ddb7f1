//! memcached's dialects, one file each.
