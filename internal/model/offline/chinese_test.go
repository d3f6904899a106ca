package offline

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestChinese(t *testing.T) {
	t.Parallel()
	keeps(t, []kept{
		{"上个月我从成都搬到了杭州。", "上个月用户从成都搬到了杭州", memory.TypeEvent},
		{"我在一家游戏公司做策划。", "用户在一家游戏公司做策划", memory.TypeFact},
		{"我周三不上班。", "用户周三不上班", memory.TypeFact},
		{"我喜欢喝咖啡。", "用户喜欢喝咖啡", memory.TypePreference},
		{"我不吃肉。", "用户不吃肉", memory.TypePreference},
		{"你好，我叫李娜。", "用户叫李娜", memory.TypeIdentity},
		{"我的名字是王伟。", "用户的名字是王伟", memory.TypeIdentity},
		{"我和妻子住在上海，我有两个孩子。", "用户和妻子住在上海，用户有两个孩子", memory.TypeFact},
		{"我住在上海。", "用户住在上海", memory.TypeFact},
		{"我是一名护士。", "用户是一名护士", memory.TypeIdentity},
		{"我对花生过敏。", "用户对花生过敏", memory.TypeFact},
		{"我有两个孩子和一只猫。", "用户有两个孩子和一只猫", memory.TypeFact},
		{"去年我搬到了深圳。", "去年用户搬到了深圳", memory.TypeEvent},
		{"我们决定使用Postgres。", "用户说：我们决定使用Postgres", memory.TypeDecision},
		{"我决定辞掉我的工作。", "用户决定辞掉用户的工作", memory.TypeDecision},
		{"我打算明年去日本旅行。", "用户打算明年去日本旅行", memory.TypeGoal},
		{"我的妹妹住在罗马。", "用户的妹妹住在罗马", memory.TypeFact},
		{"请记住，我更喜欢绿茶。", "用户更喜欢绿茶", memory.TypePreference},
		{"我必须在周五之前交报告。", "用户必须在周五之前交报告", memory.TypeTodo},
		{"我女儿五岁了。", "用户女儿五岁了", memory.TypeFact},
		{"我周一有个会议。", "用户周一有个会议", memory.TypeFact},
		{"我喜歡爬山。", "用户喜歡爬山", memory.TypePreference},
		{"我在一家医院工作。", "用户在一家医院工作", memory.TypeFact},
		{"项目发布会在下周五。", "项目发布会在下周五", memory.TypeEvent},
	})
	leaves(t, []string{
		"你好，你好吗？", "早上好！", "谢谢你的帮助。", "法国的首都是哪里？", "你能给我写一首诗吗？", "请总结这段文字。", "给我讲个笑话。",
		"我有一个问题。", "我想知道这是怎么回事。", "我需要你的帮助。", "我很好，谢谢。", "我不知道。", "好的。", "今天天气很好。", "巴黎是法国的首都。",
		"帮我写一封邮件。", "明天见。", "怎么煮米饭？", "我觉得不错。", "我明白了。",
	})
}
