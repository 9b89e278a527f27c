-- Ties the crawl's state to a filter, and sets where the crawl stands if nothing is known of it.
-- KEYS: lease, state
-- ARGV: token, filter id, version, seq, tip
local lease, state = unpack(KEYS)
local token, filter, version, seq, tip = unpack(ARGV)

local refusal = lease_refusal(lease, token)
if refusal then
    return refusal
end
redis.call('HSETNX', state, 'seq', seq)
redis.call('HSETNX', state, 'tip', tip)
redis.call('HSET', state, 'filter', filter, 'version', version)
return {'ok'}
