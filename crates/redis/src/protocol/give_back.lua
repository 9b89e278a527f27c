-- Ends a run: gives claimed items that are not committed back to the end of the source from which
-- they were taken, if that moves few items, and releases the lease.
-- KEYS: lease, source, claimed items
-- ARGV: token, end from which items are taken ('left' or 'right'), maximum number of items to move
-- Answers 'ok', number of items given back, number of items still claimed, number of items that
--       wait to be claimed; or 'lease' and the lease; or an error.
-- Never changes the order of items, and never removes one from both lists.
local lease, source, claimed = unpack(KEYS)
local is_left, most = ARGV[2] == 'left', tonumber(ARGV[3])

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(claimed, 'list')
    or type_refusal(source, 'list')
    or permission_refusal('LMOVE', claimed, source, 'LEFT', 'LEFT')
    or permission_refusal('LMOVE', source, claimed, 'LEFT', 'LEFT')
    or permission_refusal('RENAME', claimed, source)
    or permission_refusal('DEL', lease)
if refusal then
    return refusal
end
-- Moves the items of the shorter list.
local unread, waiting = redis.call('LLEN', claimed), redis.call('LLEN', source)
local back = 0
if unread > 0 and math.min(unread, waiting) <= most then
    back = unread
    if unread <= waiting then
        move(claimed, source, is_left, unread)
    else
        move(source, claimed, not is_left, waiting)
        redis.call('RENAME', claimed, source)
    end
end
redis.call('DEL', lease)
return {'ok', back, unread - back, redis.call('LLEN', source)}
