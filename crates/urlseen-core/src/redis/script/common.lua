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

-- Sets the heartbeat of a consumer to the milliseconds of the server's clock, so that people see its
-- age. If the clock is behind, or if this user may not read it, adds 1: the heartbeat only grows.
local function beat(consumers, consumer)
    local time, last = redis.pcall('TIME'), tonumber(redis.call('HGET', consumers, consumer))
    local now = time.err and 0 or time[1] * 1000 + math.floor(time[2] / 1000)
    local next_beat = last and last < 2 ^ 53 and last + 1 or 1
    redis.call('HSET', consumers, consumer, string.format('%.0f', math.max(now, next_beat)))
end
