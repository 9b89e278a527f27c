-- Functions that several scripts need. The text of each script comes after this text.
--
-- A refusal is the answer of a script that changes nothing: an error, or a table whose first
-- element is the reason. A check answers a refusal or nil, so that `or` joins checks. Redis does
-- not roll a script back, so each script makes all checks before its first write.

-- Maximum number of arguments of a Lua call: the stack of Lua has room for 8,000 values.
local CHUNK = 7000

-- Refuses a command that this user may not run on the key. Redis before 7.0 cannot check
-- permissions in a script, so only the check at the start of the daemon applies.
local function permission_refusal(command, key, ...)
    if redis.acl_check_cmd and not redis.acl_check_cmd(command, key, ...) then
        return redis.error_reply(
            'NOPERM this user may not run ' .. command .. ' on the key ' .. key)
    end
end

-- Refuses a key that holds a value of another type.
local function type_refusal(key, wanted)
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= wanted then
        return redis.error_reply(
            'WRONGTYPE the key ' .. key .. ' holds a ' .. found .. ', not a ' .. wanted)
    end
end

-- A lease is the text TOKEN, a space, and the holder. TOKEN has 32 characters: 16 for the run, and
-- 16 for the connection of the run.
local function run_of(lease)
    return string.sub(lease, 1, 16)
end

local function lease_refusal(key, token)
    local lease = redis.call('GET', key) or ''
    if string.sub(lease, 1, 32) ~= token then
        return {'lease', lease}
    end
end

-- Refuses a list of claimed items that has other than `wanted` items. Also refuses a key of another
-- type.
local function claimed_refusal(claimed, wanted)
    local found = redis.call('LLEN', claimed)
    if found ~= tonumber(wanted) then
        return {'source', 'the list of claimed items: it now holds ' .. found .. ' items'}
    end
    return permission_refusal('LTRIM', claimed, 0, -1)
end

-- Removes the first `count` of the claimed items. `take_from` ('left' or 'right') is the end from
-- which items are taken.
local function remove_claimed(claimed, take_from, count)
    if take_from == 'left' then
        redis.call('LTRIM', claimed, count, -1)
    else
        redis.call('LTRIM', claimed, 0, -count - 1)
    end
end

-- Refuses if the arguments from `first` on are rejects, and the user may not write to their list.
local function rejects_refusal(rejected, first)
    return #ARGV >= first and (
        permission_refusal('RPUSH', rejected, '')
        or permission_refusal('LTRIM', rejected, 0, -1)) or nil
end

-- Pushes the arguments from `first` on to a list.
local function push_arguments(command, list, first)
    for from = first, #ARGV, CHUNK do
        redis.call(command, list, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
    end
end

-- Moves the first items of one list to an end of another list, in their order. Redis moves them one
-- by one, so that even large items do not pass through Lua.
local function move(from, to, to_left, count)
    local pop, push = 'LEFT', 'RIGHT'
    if to_left then
        pop, push = push, pop
    end
    for _ = 1, count do
        redis.call('LMOVE', from, to, pop, push)
    end
end

-- Sets the heartbeat of a consumer to the milliseconds of the server's clock, so that people see
-- its age. If the clock is behind, or if this user may not read it, adds 1: the heartbeat only
-- grows.
local function beat(consumers, consumer)
    local time, last = redis.pcall('TIME'), tonumber(redis.call('HGET', consumers, consumer))
    local now = time.err and 0 or time[1] * 1000 + math.floor(time[2] / 1000)
    local next_beat = last and last < 2 ^ 53 and last + 1 or 1
    redis.call('HSET', consumers, consumer, string.format('%.0f', math.max(now, next_beat)))
end
