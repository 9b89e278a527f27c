-- Forgets where a crawl stands, as if it had never been run.
-- KEYS: lease, state
-- ARGV: token
local lease, state = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
redis.call('DEL', state)
return {'ok'}
