// Memory for OpenCode: copy this file to ~/.config/opencode/plugin/. It asks `memory hook opencode` (docs/hooks.md)
// when a session begins, at each prompt, before a command or an edit, after a command failed, before compaction, and when
// a session ends; on any trouble it does nothing.
import { spawn } from "node:child_process"

const ask = (payload) =>
  new Promise((resolve) => {
    let text = ""
    const done = () => {
      try {
        resolve(JSON.parse(text).context ?? "")
      } catch {
        resolve("")
      }
    }
    const hook = spawn("memory", ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    hook.on("error", done)
    hook.on("close", done)
    hook.stdin.on("error", () => {})
    hook.stdout.on("data", (part) => (text += part))
    hook.stdin.end(JSON.stringify(payload))
  })

export const Memoranda = async ({ directory }) => {
  const context = new Map() // of each session: what it was told so far
  const last = new Map() // and what was asked last, as OpenCode keeps no transcript a hook could read
  const tell = async (session, event, more = {}) => {
    const text = await ask({ hook_event_name: event, session_id: session, cwd: directory, ...more })
    if (text) context.set(session, [...(context.get(session) ?? []), text])
  }
  const known = new Map() // of each call of a tool: what was known of it before it ran
  const acting = new Set(["bash", "edit", "write", "patch"])
  const about = (session, event, tool, given, more = {}) =>
    ask({ hook_event_name: event, session_id: session, cwd: directory, tool_name: tool, tool_input: given, ...more })
  return {
    // OpenCode takes no text before a tool runs: what is known stands in front of what the tool gave back
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (!acting.has(tool)) return
      const text = await about(sessionID, "tool", tool, args)
      if (text) known.set(callID, text)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      if (!acting.has(tool)) return
      const texts = [known.get(callID)]
      known.delete(callID)
      const exit = output.metadata?.exit
      if (exit) texts.push(await about(sessionID, "failed", tool, args ?? {}, { error: String(output.output ?? "") }))
      const text = texts.filter(Boolean).join("\n")
      if (text) output.output = `${text}\n${output.output ?? ""}`
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!context.has(sessionID)) {
        context.set(sessionID, [])
        await tell(sessionID, "start", { source: "startup" })
      }
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
      last.set(sessionID, prompt)
      await tell(sessionID, "prompt", { prompt })
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      system.push(...(context.get(sessionID) ?? []))
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await tell(sessionID, "checkpoint", { prompt: last.get(sessionID) ?? "" })
    },
    event: async ({ event }) => {
      if (event.type !== "session.deleted") return
      const session = event.properties.info.id
      await tell(session, "end", { prompt: last.get(session) ?? "" })
      context.delete(session)
      last.delete(session)
    },
  }
}
