-- Begins a session of a router: names the history of the source, if it has no name yet.
-- KEYS: lease, state
-- ARGV: token, random id
-- Answers 'ok', id of the history, number of routed items in it.
local lease, state = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
redis.call('HSETNX', state, 'history', ARGV[2])
local found = redis.call('HMGET', state, 'history', 'routed')
return {'ok', found[1], tonumber(found[2] or 0)}
