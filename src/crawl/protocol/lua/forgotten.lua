-- Removes items to forget from their list after the daemon's log has them. Stores rejects for the
-- unreadable items.
-- KEYS: lease, forgetting, rejected, oversize
-- ARGV: token, number of items to remove, number of rejects, the rejects, then number and reject of
--       each oversize item
local lease, forgetting, rejected, oversize = unpack(KEYS)
local first_reject = 4
local first_large = first_reject + tonumber(ARGV[3])

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(forgetting, 'list')
    or type_refusal(rejected, 'list')
    or type_refusal(oversize, 'list')
    or rejects_refusal(rejected, oversize, first_large - first_reject, #ARGV - first_large + 1)
if refusal then
    return refusal
end
push_rejects(rejected, first_reject, first_large - 1)
source_commit(forgetting, tonumber(ARGV[2]), oversize, first_large)
return {'ok'}
