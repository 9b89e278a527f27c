-- Removes items to forget from their list after the daemon's log has them. Stores rejects for the
-- unreadable items.
-- KEYS: lease, forgetting, rejected
-- ARGV: token, number of items to remove, the rejects
local lease, forgetting, rejected = unpack(KEYS)
local first_reject = 3

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(forgetting, 'list')
    or type_refusal(rejected, 'list')
    or rejects_refusal(rejected, #ARGV - first_reject + 1)
if refusal then
    return refusal
end
push_rejects(rejected, first_reject)
source_commit(forgetting, tonumber(ARGV[2]))
return {'ok'}
