-- Ties the crawl's state to a filter, and sets the crawl's head if Redis has none. Publishes the
-- crawl record.
-- KEYS: lease, state, crawl record
-- ARGV: token, filter id, format, seq, commit_id, the fields and values of the record, of which the
--       first is the protocol
-- Answers 'ok'; or 'lease' and the lease; 'record', protocol and version of a later urlseen;
--       'partitions' and the number of partitions of the crawl that has this record; or an error.
-- Never changes a head that Redis has, and never replaces a partition table.
local lease, state, record = unpack(KEYS)
local token, filter, format, seq, commit_id = unpack(ARGV)

local refusal = lease_refusal(lease, token)
if refusal then
    return refusal
end
local found = redis.call('HMGET', record, 'protocol', 'urlseen')
local theirs, ours = tonumber(found[1] or 0), tonumber(ARGV[7])
if not theirs or theirs > ours then
    return {'record', found[1], found[2] or ''}
end
-- The key of the record may belong to a crawl with several partitions, which this crawl is not.
local partitions = redis.call('HGET', record, 'tags') and redis.call('HGET', record, 'partitions')
if partitions then
    return {'partitions', partitions}
end
redis.call('HSETNX', state, 'seq', seq)
redis.call('HSETNX', state, 'commit_id', commit_id)
redis.call('HSET', state, 'filter', filter, 'format', format)
redis.call('DEL', record)
redis.call('HSET', record, unpack(ARGV, 6))
return {'ok'}
