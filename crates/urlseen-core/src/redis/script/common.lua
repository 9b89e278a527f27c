-- How many arguments Lua hands over in one call: it has room for 8,000 values on its stack.
local CHUNK = 7000

-- Refuses a command that this user may not run on the key. Redis before 7.0 cannot tell; there the
-- proof given at the start has to do.
local function permission_refusal(command, key, ...)
    if redis.acl_check_cmd and not redis.acl_check_cmd(command, key, ...) then
        return redis.error_reply(
            'NOPERM this user may not run ' .. command .. ' on the key ' .. key)
    end
end
