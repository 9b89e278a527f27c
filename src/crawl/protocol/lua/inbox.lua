-- Pushes items without a fingerprint to a partition, unless the partition has them already. The
-- inbox is a sorted set of the marks of such items, in the order of their arrival.
-- KEYS: source, inbox
-- ARGV: command that pushes, maximum number of marks, then mark and item alternately
-- Answers 'ok', number of pushed items.
local source, inbox = unpack(KEYS)
local push, most = ARGV[1], tonumber(ARGV[2])

local function refusal()
    local found = redis.call('TYPE', source).ok
    if found ~= 'none' and found ~= 'list' then
        return redis.error_reply('WRONGTYPE the key ' .. source .. ' holds a ' .. found)
    end
    return permission_refusal(push, source, '')
        or permission_refusal('ZADD', inbox, 'NX', 0, '')
        or permission_refusal('ZREMRANGEBYRANK', inbox, 0, 0)
end

local refused = refusal()
if refused then
    return refused
end
local last = redis.call('ZRANGE', inbox, -1, -1, 'WITHSCORES')
local score, pushed = tonumber(last[2] or 0), 0
for index = 3, #ARGV, 2 do
    if redis.call('ZADD', inbox, 'NX', score + 1, ARGV[index]) == 1 then
        score = score + 1
        redis.call(push, source, ARGV[index + 1])
        pushed = pushed + 1
    end
end
if pushed == 0 then
    -- An earlier connection pushed the items. A WAIT covers only writes of its own connection, and
    -- answers at once if there was none.
    redis.call('ZADD', inbox, score + 1, last[1])
end
redis.call('ZREMRANGEBYRANK', inbox, 0, -most - 1)
return {'ok', pushed}
