-- Deletes a crawl's state and its record, as if the crawl had never been run.
-- KEYS: lease, state, crawl record
-- ARGV: token
local lease, state, record = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
redis.call('DEL', state, record)
return {'ok'}
