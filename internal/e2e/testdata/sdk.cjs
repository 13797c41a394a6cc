// Checks of the official SDKs for TypeScript: sdk.cjs CHECK BASE_URL KEY prints what they made
// of it as JSON.
const Anthropic = require("@anthropic-ai/sdk");
const OpenAI = require("openai");

const [check, base, key] = process.argv.slice(2);
const claude = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0 });
const gpt = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });

const checks = {
  // All files, page by page, with other work between the pages.
  async files() {
    const ids = [];
    for await (const file of gpt.files.list({ limit: 3 })) {
      ids.push(file.id);
      if (ids.length % 3 === 0) await gpt.responses.create({ model: "gpt-5.5", input: `hello ${ids.length}` });
    }
    return ids;
  },
  // A batch's results, which the SDK reads by their link.
  async results() {
    await claude.messages.batches.create({ requests: [] });
    const ids = [];
    for await (const result of await claude.messages.batches.results("msgbatch_1")) ids.push(result.custom_id);
    return ids;
  },
  // A response that is continued by its id, and by reference to one of its items.
  async stored() {
    const first = await gpt.responses.create({ model: "gpt-5.5", input: "hello" });
    await gpt.responses.create({ model: "gpt-5.5", input: "and then", previous_response_id: first.id });
    await gpt.responses.create({
      model: "gpt-5.5",
      input: [{ type: "item_reference", id: first.output[0].id }, { role: "user", content: "more" }],
    });
    return [first.id];
  },
  // The events of streams that are silent for a while.
  async messages() {
    const types = [];
    const stream = await claude.messages.create({
      model: "claude-opus-5", max_tokens: 100, stream: true, messages: [{ role: "user", content: "hello" }],
    });
    for await (const event of stream) types.push(event.type);
    return types;
  },
  async responses() {
    const types = [];
    for await (const event of await gpt.responses.create({ model: "gpt-5.5", input: "hello", stream: true })) types.push(event.type);
    return types;
  },
  async chat() {
    const types = [];
    const stream = await gpt.chat.completions.create({
      model: "gpt-5.5", stream: true, messages: [{ role: "user", content: "hello" }],
    });
    for await (const chunk of stream) types.push(chunk.object);
    return types;
  },
};

checks[check]().then(
  (value) => console.log(JSON.stringify(value)),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
