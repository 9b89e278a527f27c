-- Claims the items of the source: renames it to the processing list, or moves its first items
-- there. TAKE_FROM ('left' or 'right') is the end from which items are taken.
-- KEYS: lease, source, processing list
-- ARGV: token, maximum number of items that one claim moves (0: all), maximum number of items to
--       claim while others are claimed
-- Answers 'ok', the number of claimed items.
local lease, source, processing = unpack(KEYS)
local most, more = tonumber(ARGV[2]), tonumber(ARGV[3])

-- Moves the first `count` of `waiting` items to the processing list, which does not exist. SORT and
-- LTRIM take a sixth of the time of LMOVE, but some users may not run SORT.
local function claim_first(waiting, count)
    local is_left = TAKE_FROM == 'left'
    if not permission_refusal('LTRIM', source, 0, -1) then
        local first = is_left and 0 or waiting - count
        local copied = redis.pcall(
            'SORT', source, 'BY', 'nosort', 'LIMIT', first, count, 'STORE', processing)
        if copied == count then
            redis.call('LTRIM', source, is_left and count or 0, is_left and -1 or first - 1)
            return
        end
    end
    move(source, processing, not is_left, count)
end

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
-- LLEN fails on keys of another type, which refuses such keys.
local claimed, waiting = redis.call('LLEN', processing), redis.call('LLEN', source)
local count = 0
if claimed > 0 then
    count = math.min(waiting, more)
    move(source, processing, TAKE_FROM == 'right', count)
elseif most > 0 and waiting > most then
    count = most
    claim_first(waiting, count)
elseif waiting > 0 then
    count = waiting
    redis.call('RENAME', source, processing)
end
return {'ok', claimed + count}
