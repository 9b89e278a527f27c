-- Removes the items of a batch from the source, after all partitions have them.
-- KEYS: lease, state, claimed items, oversize
-- ARGV: token, id of the history, number of routed items before the batch, number of items,
--       number of claimed items
local lease, state, claimed, oversize = unpack(KEYS)
local token, history, before, count, place = unpack(ARGV)

local refusal = lease_refusal(lease, token)
    or source_refusal(claimed, place, oversize, 0)
    or permission_refusal('HSET', state, 'routed', before)
if refusal then
    return refusal
end
local found = redis.call('HMGET', state, 'history', 'routed')
if found[1] ~= history or (found[2] or '0') ~= before then
    return {'source', 'the number of routed items: it is ' .. (found[2] or '0') .. ' now'}
end
source_commit(claimed, tonumber(count), oversize, #ARGV + 1)
redis.call('HSET', state, 'routed', string.format('%.0f', before + count))
return {'ok'}
