-- Removes claimed items that have arrived: those of a router's batch, after all partitions have
-- them, or items to forget, after the daemon's log has them. Stores rejects for unreadable items.
-- KEYS: lease, claimed items, rejects (missing if the items have no rejects)
-- ARGV: token, end from which items are taken ('left' or 'right'), number of claimed items ('' for
--       any number), number of items to remove, the rejects
-- Answers 'ok'; or 'lease' and the lease; 'source' and what has changed; or an error.
-- Never removes items under another token.
local lease, claimed, rejected = unpack(KEYS)
local token, take_from, before, count = unpack(ARGV, 1, 4)

local refusal = lease_refusal(lease, token)
    or type_refusal(claimed, 'list')
    or before ~= '' and claimed_refusal(claimed, before)
    or rejected and (type_refusal(rejected, 'list') or rejects_refusal(rejected, 5))
if refusal then
    return refusal
end
push_arguments('RPUSH', rejected, 5)
remove_claimed(claimed, take_from, tonumber(count))
return {'ok'}
