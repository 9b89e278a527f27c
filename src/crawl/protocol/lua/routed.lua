-- Removes the items of a batch from the source, after all partitions have them.
-- KEYS: lease, claimed items
-- ARGV: token, number of claimed items, number of items of the batch
local lease, claimed = unpack(KEYS)
local token, before, count = unpack(ARGV)

local refusal = lease_refusal(lease, token) or source_refusal(claimed, before)
if refusal then
    return refusal
end
source_commit(claimed, tonumber(count))
return {'ok'}
