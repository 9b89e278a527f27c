-- Claims the items of a list: renames it to the list of claimed items, or moves its first items
-- there.
-- KEYS: lease, source, claimed items
-- ARGV: token, end from which items are taken ('left' or 'right'), maximum number of items that one
--       claim moves (0: all), maximum number of items to claim while others are claimed
-- Answers 'ok' and the number of claimed items; or 'lease' and the lease; or an error.
-- Never changes the order of items, and never removes one from both lists.
local lease, source, claimed = unpack(KEYS)
local is_left, most, more = ARGV[2] == 'left', tonumber(ARGV[3]), tonumber(ARGV[4])

-- Moves the first `count` of `waiting` items to the list of claimed items, which does not exist.
-- SORT and LTRIM take a sixth of the time of LMOVE, but some users may not run SORT.
local function claim_first(waiting, count)
    if not permission_refusal('LTRIM', source, 0, -1) then
        local first = is_left and 0 or waiting - count
        local copied = redis.pcall(
            'SORT', source, 'BY', 'nosort', 'LIMIT', first, count, 'STORE', claimed)
        if copied == count then
            redis.call('LTRIM', source, is_left and count or 0, is_left and -1 or first - 1)
            return
        end
    end
    move(source, claimed, not is_left, count)
end

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
-- LLEN fails on keys of another type, which refuses such keys.
local before, waiting = redis.call('LLEN', claimed), redis.call('LLEN', source)
local count = 0
if before > 0 then
    count = math.min(waiting, more)
    move(source, claimed, not is_left, count)
elseif most > 0 and waiting > most then
    count = most
    claim_first(waiting, count)
elseif waiting > 0 then
    count = waiting
    redis.call('RENAME', source, claimed)
end
return {'ok', before + count}
