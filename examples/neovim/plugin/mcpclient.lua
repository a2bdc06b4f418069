-- Commands and buffers of mcpclient. Loads nothing until one of them is used.

if vim.g.loaded_mcpclient or vim.fn.has("nvim-0.7") == 0 then
  return
end
vim.g.loaded_mcpclient = true

local function command(name, verb, options)
  options.complete = options.nargs and function(lead, line, position)
    return require("mcpclient.complete").complete(verb, lead, line, position)
  end
  vim.api.nvim_create_user_command(name, function(given)
    require("mcpclient.commands").run(verb, given)
  end, options)
end

command("McpServers", "servers", { desc = "Show the MCP servers, live" })
command("McpStart", "start", { nargs = 1, desc = "Start an MCP server" })
command("McpStop", "stop", { nargs = 1, desc = "Stop an MCP server" })
command("McpRestart", "restart", { nargs = 1, desc = "Restart an MCP server" })
command("McpTool", "tool", { nargs = "+", range = true, bang = true, desc = "Call a tool" })
command("McpPrompt", "prompt", { nargs = "+", desc = "Get a prompt" })
command("McpResource", "resource", { nargs = "+", desc = "Open a resource and follow it" })
command("McpLog", "log", { nargs = "?", desc = "Show what a server said on stderr, and its deaths" })
command("McpCancel", "cancel", { desc = "Cancel the tools that are running" })

local group = vim.api.nvim_create_augroup("mcpclient", {})
vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = { "mcp://*", "mcp-servers://*", "mcp-log://*" },
  callback = function(event)
    require("mcpclient.pages").read(event.buf, event.match)
  end,
})
