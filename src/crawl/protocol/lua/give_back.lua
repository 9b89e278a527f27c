-- Ends a run: gives claimed items that are not committed back to the end of the source from which
-- they were taken, if that moves few items, and releases the lease. TAKE_FROM ('left' or 'right')
-- is that end.
-- KEYS: lease, source, processing list
-- ARGV: token, maximum number of items to move
-- Answers 'ok', number of items given back, number of items still claimed, number of items that
--         wait to be claimed.
local lease, source, processing = unpack(KEYS)
local most = tonumber(ARGV[2])

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(processing, 'list')
    or type_refusal(source, 'list')
    or permission_refusal('LMOVE', processing, source, 'LEFT', 'LEFT')
    or permission_refusal('LMOVE', source, processing, 'LEFT', 'LEFT')
    or permission_refusal('RENAME', processing, source)
    or permission_refusal('DEL', lease)
if refusal then
    return refusal
end
-- Moves the items of the shorter list.
local claimed, waiting = redis.call('LLEN', processing), redis.call('LLEN', source)
local back = 0
if claimed > 0 and math.min(claimed, waiting) <= most then
    back = claimed
    if claimed <= waiting then
        move(processing, source, TAKE_FROM == 'left', claimed)
    else
        move(source, processing, TAKE_FROM == 'right', waiting)
        redis.call('RENAME', processing, source)
    end
end
redis.call('DEL', lease)
return {'ok', back, claimed - back, redis.call('LLEN', source)}
