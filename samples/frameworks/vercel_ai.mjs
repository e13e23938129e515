// The Vercel AI SDK with the memory tools over MCP: npm install ai @ai-sdk/mcp; pip install . (in a checkout of memoranda).
import { experimental_createMCPClient as createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { generateText, stepCountIs } from "ai";

export async function ask(model, prompt, command = "memory", args = ["mcp"]) {
  const client = await createMCPClient({ transport: new StdioTransport({ command, args, env: process.env }) });
  try {
    const { text } = await generateText({ model, prompt, tools: await client.tools(), stopWhen: stepCountIs(5) });
    return text;
  } finally {
    await client.close();
  }
}
