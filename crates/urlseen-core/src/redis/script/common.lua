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
