-- Most arguments that Lua passes in one call: its stack has room for 8,000 values.
local CHUNK = 7000

-- Refuses a command that this user may not run on the key. Redis before 7.0 cannot check that
-- inside a script; the check at the daemon's start has to suffice there.
local function permission_refusal(command, key, ...)
    if redis.acl_check_cmd and not redis.acl_check_cmd(command, key, ...) then
        return redis.error_reply(
            'NOPERM this user may not run ' .. command .. ' on the key ' .. key)
    end
end
