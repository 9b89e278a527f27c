-- Ends a run: gives claimed items that are not committed back to the source, if that moves few
-- items, and releases the lease.
-- KEYS: lease, state, the keys of the source
-- ARGV: token, maximum number of items to move
-- Answers 'ok', number of items given back, number of items still claimed, number of items that
--         wait to be claimed.
local lease, state = unpack(KEYS, 1, 2)
local source = {unpack(KEYS, 3)}

local refusal = lease_refusal(lease, ARGV[1])
    or source_give_back_refusal(source)
    or permission_refusal('DEL', lease)
if refusal then
    return refusal
end
local back, left = source_give_back(source, tonumber(ARGV[2]))
redis.call('DEL', lease)
return {'ok', back, left, source_waiting(state, source)}
